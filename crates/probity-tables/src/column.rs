//! Columns while they are filled.

use std::{borrow::Cow, collections::BTreeMap, mem, sync::Arc};

use arrow_array::{
    ArrayRef, DictionaryArray, ListArray, StringArray, StructArray,
    builder::{
        BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMillisecondBuilder,
    },
    types::Int32Type,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::ArrowError;

use crate::schema::{Column, Kind, fields, struct_item, text_item};

/// A value of a row.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    Number(f64),
    Flag(bool),
    Texts(&'a [String]),
    Structs(Vec<Vec<Self>>),
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn maybe_text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Null, |it| Self::Text(it.into()))
    }

    /// A number that stays far below the bound of its column.
    pub(crate) fn count(number: impl TryInto<i64>) -> Self {
        Self::Integer(number.try_into().unwrap_or(i64::MAX))
    }

    pub(crate) fn maybe_count(number: Option<impl TryInto<i64>>) -> Self {
        number.map_or(Self::Null, Self::count)
    }

    pub(crate) fn maybe_number(number: Option<f64>) -> Self {
        number.map_or(Self::Null, Self::Number)
    }

    /// About what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Number(_) | Self::Flag(_) => 8,
            Self::Text(text) => 8 + text.len(),
            Self::Texts(texts) => texts.iter().map(|it| 8 + it.len()).sum(),
            Self::Structs(rows) => rows.iter().flatten().map(Self::bytes).sum(),
        }
    }
}

/// The words of a column that has only a few.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    places: BTreeMap<String, i32>,
    /// The same in every batch, so that they are written once: a file of Arrow cannot replace them.
    values: Arc<StringArray>,
}

impl Words {
    pub(crate) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut places: BTreeMap<String, i32> =
            words.into_iter().map(|it| (it.to_owned(), 0)).collect();
        places.values_mut().zip(0..).for_each(|(place, at)| *place = at);
        let values = Arc::new(StringArray::from_iter_values(places.keys()));
        Self { places, values }
    }
}

/// A column of a batch.
#[derive(Debug)]
pub(crate) enum Builder {
    Text(StringBuilder),
    Word { keys: Int32Builder, words: Words },
    Integer(Int64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
    Texts { lengths: Vec<usize>, items: StringBuilder },
    Structs { lengths: Vec<usize>, of: &'static [Column], columns: Vec<Self> },
}

/// A value that its column cannot hold: a fault of this program.
#[derive(Debug, thiserror::Error)]
#[error("the column cannot hold {0}")]
pub(crate) struct Misfit(String);

impl Builder {
    /// An empty one; `words` says which words a column can have.
    pub(crate) fn new(column: &Column, words: &dyn Fn(&str) -> Words) -> Self {
        match column.kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Word => Self::Word { keys: Int32Builder::new(), words: words(column.name) },
            Kind::Integer => Self::Integer(Int64Builder::new()),
            Kind::Number => Self::Number(Float64Builder::new()),
            Kind::Flag => Self::Flag(BooleanBuilder::new()),
            Kind::Time => Self::Time(TimestampMillisecondBuilder::new().with_timezone("UTC")),
            Kind::Texts => Self::Texts { lengths: Vec::new(), items: StringBuilder::new() },
            Kind::Structs(of) => {
                let columns = of.iter().map(|it| Self::new(it, words)).collect();
                Self::Structs { lengths: Vec::new(), of, columns }
            }
        }
    }

    pub(crate) fn push(&mut self, value: &Value<'_>) -> Result<(), Misfit> {
        match (self, value) {
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Text(column), Value::Null) => column.append_null(),
            (Self::Word { keys, words }, Value::Text(text)) => match words.places.get(&**text) {
                Some(at) => keys.append_value(*at),
                None => return Err(Misfit(format!("the word `{text}`"))),
            },
            (Self::Word { keys, .. }, Value::Null) => keys.append_null(),
            (Self::Integer(column), Value::Integer(it)) => column.append_value(*it),
            (Self::Integer(column), Value::Null) => column.append_null(),
            (Self::Number(column), Value::Number(it)) => column.append_value(*it),
            (Self::Number(column), Value::Null) => column.append_null(),
            (Self::Flag(column), Value::Flag(it)) => column.append_value(*it),
            (Self::Flag(column), Value::Null) => column.append_null(),
            (Self::Time(column), Value::Integer(it)) => column.append_value(*it),
            (Self::Time(column), Value::Null) => column.append_null(),
            (Self::Texts { lengths, items }, Value::Texts(texts)) => {
                lengths.push(texts.len());
                texts.iter().for_each(|it| items.append_value(it));
            }
            (Self::Structs { lengths, columns, .. }, Value::Structs(rows)) => {
                lengths.push(rows.len());
                for row in rows {
                    for (column, value) in columns.iter_mut().zip(row) {
                        column.push(value)?;
                    }
                }
            }
            (_, value) => return Err(Misfit(format!("{value:?}"))),
        }
        Ok(())
    }

    /// What was filled in; it is empty afterwards.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Text(column) => Arc::new(column.finish()),
            Self::Word { keys, words } => {
                let values: ArrayRef = words.values.clone();
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys.finish(), values)?)
            }
            Self::Integer(column) => Arc::new(column.finish()),
            Self::Number(column) => Arc::new(column.finish()),
            Self::Flag(column) => Arc::new(column.finish()),
            Self::Time(column) => Arc::new(column.finish()),
            Self::Texts { lengths, items } => {
                let offsets = OffsetBuffer::from_lengths(mem::take(lengths));
                Arc::new(ListArray::try_new(text_item(), offsets, Arc::new(items.finish()), None)?)
            }
            Self::Structs { lengths, of, columns } => {
                let rows = lengths.iter().sum();
                let offsets = OffsetBuffer::from_lengths(mem::take(lengths));
                let arrays = columns.iter_mut().map(Self::finish).collect::<Result<_, _>>()?;
                let items = StructArray::try_new_with_length(fields(of), arrays, None, rows)?;
                Arc::new(ListArray::try_new(struct_item(of), offsets, Arc::new(items), None)?)
            }
        })
    }
}
