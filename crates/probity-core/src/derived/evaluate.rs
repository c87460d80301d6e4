//! What expressions come to. Nothing of it can fail but for want of a value.

use probity_stats::spread::{Moments, percentile};

use super::{DerivedFigure, Function, Named, Part, Term, expression::Operator};
use crate::{
    gate::{Observed, observed},
    metrics::Metrics,
};

/// The value of a term, or why it has none.
pub(super) fn value(
    term: &Term,
    metrics: &Metrics,
    known: &[DerivedFigure],
) -> Result<f64, String> {
    let of = |term: &Term| value(term, metrics, known);
    match term {
        Term::Number(value) => Ok(*value),
        Term::Named(named) => of_named(named, metrics, known),
        Term::Minus(inner) => Ok(-of(inner)?),
        Term::Not(inner) => Ok(truth(of(inner)? == 0.0)),
        Term::Binary(operator, left, right) => {
            let (left, right) = (of(left)?, of(right)?);
            if right == 0.0 && matches!(operator, Operator::By | Operator::Modulo) {
                return Err("it divides by 0".to_owned());
            }
            finite(binary(*operator, left, right))
        }
        Term::Choice(parts) => {
            let [condition, then, other] = &**parts;
            of(if of(condition)? == 0.0 { other } else { then })
        }
        Term::Call(function, arguments) => {
            let arguments: Vec<f64> = arguments.iter().map(of).collect::<Result<_, _>>()?;
            let value = called(*function, &arguments);
            value.ok_or_else(|| format!("`{function}` has no value")).and_then(finite)
        }
    }
}

fn finite(value: f64) -> Result<f64, String> {
    value.is_finite().then_some(value).ok_or_else(|| "it is no finite number".to_owned())
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn of_named(named: &Named, metrics: &Metrics, known: &[DerivedFigure]) -> Result<f64, String> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let float = |count: u64| count as f64;
    match named {
        Named::Results => Ok(float(metrics.results())),
        Named::Score(part, name) => {
            let Some(score) = metrics.scores.get(&**name) else {
                return Err(format!("no result has a score `{name}`"));
            };
            match part {
                Part::Sum => Ok(score.total.plain),
                Part::Weighted => Ok(score.total.weighted),
                Part::Count => Ok(float(score.summary.count)),
                Part::Passed => Ok(float(score.summary.passed)),
                Part::Mean => {
                    let mean = score.summary.mean;
                    mean.ok_or_else(|| format!("no score `{name}` has a value"))
                }
            }
        }
        Named::Derived(name) => match known.iter().find(|it| it.name == **name) {
            Some(DerivedFigure { value: Ok(value), .. }) => Ok(*value),
            Some(DerivedFigure { value: Err(why), .. }) => {
                Err(format!("`derived.{name}` has no value: {why}"))
            }
            None => Err(format!("there is no `derived.{name}` before it")),
        },
        Named::Metric(metric) => {
            let observed = observed(metric, None, metrics);
            observed.map(Observed::value).ok_or_else(|| format!("`{metric}` has no value"))
        }
    }
}

#[expect(clippy::float_cmp, reason = "what is compared is what was written")]
fn binary(operator: Operator, left: f64, right: f64) -> f64 {
    match operator {
        Operator::Or => truth(left != 0.0 || right != 0.0),
        Operator::And => truth(left != 0.0 && right != 0.0),
        Operator::Equal => truth(left == right),
        Operator::Unequal => truth(left != right),
        Operator::Less => truth(left < right),
        Operator::AtMost => truth(left <= right),
        Operator::More => truth(left > right),
        Operator::AtLeast => truth(left >= right),
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Times => left * right,
        Operator::By => left / right,
        Operator::Modulo => modulo(left, right),
        Operator::Power => left.powf(right),
    }
}

/// What is left of a division, with the sign of the divisor.
fn modulo(left: f64, right: f64) -> f64 {
    left - right * (left / right).floor()
}

fn called(function: Function, arguments: &[f64]) -> Option<f64> {
    let first = *arguments.first()?;
    let second = arguments.get(1).copied();
    let moments = || arguments.iter().copied().collect::<Moments>();
    let value = match function {
        Function::Abs => first.abs(),
        Function::Cbrt => first.cbrt(),
        Function::Ceil => first.ceil(),
        Function::Cube => first.powi(3),
        Function::Exp => first.exp(),
        Function::Floor => first.floor(),
        Function::Hypot => arguments.iter().map(|it| it * it).sum::<f64>().sqrt(),
        Function::Log => second.map_or_else(|| first.ln(), |base| first.ln() / base.ln()),
        Function::Log10 => first.log10(),
        Function::Log2 => first.log2(),
        Function::Max => arguments.iter().copied().max_by(f64::total_cmp)?,
        Function::Mean => moments().mean()?,
        Function::Median => percentile(&mut arguments.to_vec(), 50.0)?,
        Function::Min => arguments.iter().copied().min_by(f64::total_cmp)?,
        Function::Mod => modulo(first, second.filter(|it| *it != 0.0)?),
        Function::Pow => first.powf(second?),
        Function::Prod => arguments.iter().product(),
        Function::Round => {
            let power = 10_f64.powf(second.unwrap_or(0.0).clamp(0.0, 15.0).floor());
            (first * power).round() / power
        }
        Function::Sign if first == 0.0 => 0.0,
        Function::Sign => first.signum(),
        Function::Sqrt => first.sqrt(),
        Function::Square => first * first,
        Function::Std => moments().deviation()?,
        Function::Sum => arguments.iter().sum(),
        Function::Variance => moments().deviation().map(|it| it * it)?,
    };
    Some(value)
}
