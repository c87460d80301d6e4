use std::fs;

use proptest::prelude::*;

use super::*;

/// A small file as a tool would write it: values, one tensor and its data.
pub(crate) fn sample(template: Option<&str>) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    };
    let entry = |key: &str, kind: u32, value: &[u8]| {
        [text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
    };
    let tokens = [
        TEXT.to_le_bytes().to_vec(),
        3_u64.to_le_bytes().to_vec(),
        text("<s>"),
        text("</s>"),
        text("a"),
    ];
    let mut entries = vec![
        entry("general.architecture", TEXT, &text("llama")),
        entry("general.name", TEXT, &text("Sample")),
        entry("general.quantized", 7, &[1]),
        entry("llama.context_length", 4, &2048_u32.to_le_bytes()),
        entry("llama.rope.freq_base", 6, &[0; 4]),
        entry("tokenizer.ggml.tokens", ARRAY, &tokens.concat()),
        entry(
            "tokenizer.ggml.scores",
            ARRAY,
            &[&6_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &[0; 8]].concat(),
        ),
        entry("tokenizer.ggml.bos_token_id", 4, &0_u32.to_le_bytes()),
        entry("tokenizer.ggml.eos_token_id", 4, &1_u32.to_le_bytes()),
    ];
    entries.extend(template.map(|it| entry("tokenizer.chat_template", TEXT, &text(it))));
    let tensor = [
        text("token_embd.weight"),
        1_u32.to_le_bytes().to_vec(),
        8_u64.to_le_bytes().to_vec(),
        0_u32.to_le_bytes().to_vec(),
        0_u64.to_le_bytes().to_vec(),
    ];
    let head = [
        MAGIC.to_vec(),
        3_u32.to_le_bytes().to_vec(),
        1_u64.to_le_bytes().to_vec(),
        (entries.len() as u64).to_le_bytes().to_vec(),
    ];
    [head.concat(), entries.concat(), tensor.concat(), vec![0; 64]].concat()
}

fn flaw(bytes: &[u8]) -> String {
    match parse(bytes, bytes.len() as u64) {
        Ok(header) => panic!("it was read: {header:?}"),
        Err(Flaw::Io(error)) => error.kind().to_string(),
        Err(Flaw::Form(why)) => why,
    }
}

#[test]
fn a_header_says_what_the_model_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    fs::write(&path, sample(Some("{{ messages }}"))).unwrap();
    let header = read(&path).unwrap();
    assert_eq!(header.architecture, "llama");
    assert_eq!(header.name.as_deref(), Some("Sample"));
    assert_eq!(header.context, Some(2048));
    assert_eq!(header.chat_template.as_deref(), Some("{{ messages }}"));
    assert_eq!(header.bos.as_deref(), Some("<s>"));
    assert_eq!(header.eos.as_deref(), Some("</s>"));
    assert_eq!(header.tensors, 1);
}

#[test]
fn a_text_is_not_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    fs::write(&path, "version https://git-lfs.github.com/spec/v1\n").unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(
        error
            .ends_with("is not a model: it begins like a text, and a GGUF file begins with `GGUF`"),
        "{error}"
    );
    fs::write(&path, "").unwrap();
    assert!(read(&path).unwrap_err().to_string().ends_with("it is empty, or nearly so"));
    assert!(read(folder.path()).unwrap_err().to_string().ends_with("it is no file"));
    assert!(matches!(read(&folder.path().join("none")), Err(GgufError::Read { .. })));
}

#[test]
fn lengths_are_not_believed() {
    let mut bytes = sample(None);
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(flaw(&bytes), "it says that it has 18446744073709551615 tensors");
    let mut bytes = sample(None);
    // The length of the first key.
    bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(flaw(&bytes), "it says that it has 18446744073709551615 bytes in one text");
    let mut bytes = sample(None);
    bytes[4] = 9;
    assert_eq!(flaw(&bytes), "it has version 9 of the format, which is unknown");
}

#[test]
fn a_cut_file_is_found_out_wherever_it_is_cut() {
    let whole = sample(Some("x"));
    let header = whole.len() - 64;
    for length in 0..=header {
        assert!(parse(&whole[..length], length as u64).is_err(), "cut after {length} bytes");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes[..], bytes.len() as u64);
        let bytes = [&MAGIC[..], &3_u32.to_le_bytes(), &bytes].concat();
        let _ = parse(&bytes[..], bytes.len() as u64);
    }
}
