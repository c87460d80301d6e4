//! Images in a message.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{named_enum, record::InputDigest};

named_enum! {
    /// The types of images that vendors take.
    pub enum ImageType ("a type of image") {
        /// PNG.
        Png = "image/png",
        /// JPEG.
        Jpeg = "image/jpeg",
        /// GIF.
        Gif = "image/gif",
        /// WebP.
        Webp = "image/webp",
    }
}

impl ImageType {
    /// The type that the first bytes of a file tell.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// The server fetches it from here.
    Url(Arc<str>),
    /// It is sent along.
    File(ImageFile),
}

/// An image that is sent along. Records hold its name and its digest, not its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageFile {
    /// As the dataset names it.
    pub path: Arc<str>,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ImageType,
    /// What it holds.
    pub digest: Arc<str>,
    /// How large it is.
    pub bytes: u64,
    /// Its bytes; none in a record that was read back.
    #[serde(skip)]
    pub data: Option<Arc<[u8]>>,
}

/// Why a file cannot be sent as an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageProblem {
    /// No vendor takes so large a one.
    #[error("the image has {0} bytes, more than the {max} that vendors take", max = Image::LARGEST)]
    TooLarge(u64),
    /// It is no image that vendors take.
    #[error("it is no PNG, JPEG, GIF or WebP image")]
    UnknownType,
}

impl Image {
    /// The largest image that is sent, in bytes.
    pub const LARGEST: u64 = 20 << 20;
    /// What an image counts where tokens are estimated from bytes: about 1,000 tokens.
    pub(super) const ESTIMATED_BYTES: usize = 4000;

    /// An image that is sent along, its type and size checked.
    pub fn from_bytes(path: &str, data: Vec<u8>) -> Result<Self, ImageProblem> {
        let bytes = data.len() as u64;
        if bytes > Self::LARGEST {
            return Err(ImageProblem::TooLarge(bytes));
        }
        let kind = ImageType::of(&data).ok_or(ImageProblem::UnknownType)?;
        let digest = InputDigest::of([data.as_slice()]).to_string().into();
        Ok(Self::File(ImageFile {
            path: path.into(),
            kind,
            digest,
            bytes,
            data: Some(data.into()),
        }))
    }

    /// Bytes that it takes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Url(url) => url.len(),
            Self::File(file) => file.data.as_ref().map_or(0, |it| it.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_told_by_the_first_bytes() {
        let png = b"\x89PNG\r\n\x1a\n....";
        assert_eq!(ImageType::of(png), Some(ImageType::Png));
        assert_eq!(ImageType::of(b"GIF89a."), Some(ImageType::Gif));
        assert_eq!(ImageType::of(b"RIFF\0\0\0\0WEBPVP8 "), Some(ImageType::Webp));
        assert_eq!(ImageType::of(b"\xff\xd8\xff\xe0"), Some(ImageType::Jpeg));
        for other in [&b""[..], b"<svg>", b"RIFF\0\0\0\0WAVE", b"\x89PNG"] {
            assert_eq!(ImageType::of(other), None);
        }
    }

    #[test]
    fn a_record_has_the_digest_of_an_image_and_not_its_bytes() {
        let image = Image::from_bytes("a.gif", b"GIF89a.".to_vec()).unwrap();
        let written = serde_json::to_string(&image).unwrap();
        assert!(written.len() < 120 && !written.contains("data"), "{written}");
        let Image::File(read) = serde_json::from_str(&written).unwrap() else { panic!() };
        assert_eq!((&*read.path, read.kind, read.bytes), ("a.gif", ImageType::Gif, 7));
        assert_eq!(Image::from_bytes("x", b"text".to_vec()), Err(ImageProblem::UnknownType));
    }
}
