//! Writes tokens with candle from a GGUF file, greedily, and says how fast: `candle FILE [TOKENS]`.

use std::{env, error::Error, fs::File, time::Instant};

use candle_core::{
    Device, Tensor,
    quantized::{gguf_file::Content, tokenizer::TokenizerFromGguf as _},
};
use candle_transformers::models::quantized_llama::ModelWeights;
use tokenizers::Tokenizer;

const PROMPT: &str = "<|im_start|>user\nWrite a long story about the sea.<|im_end|>\n<|im_start|>assistant\n";

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let path = env::args().nth(1).ok_or("usage: candle FILE [TOKENS]")?;
    let wanted: usize = env::args().nth(2).map_or(Ok(128), |it| it.parse())?;
    let started = Instant::now();
    let mut file = File::open(path)?;
    let content = Content::read(&mut file)?;
    let tokenizer = Tokenizer::from_gguf(&content)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?;
    println!("loaded in {:.2} s", started.elapsed().as_secs_f64());
    let mut texts = Vec::new();
    for _ in 0..3 {
        let prompt = tokenizer.encode(PROMPT, true)?.get_ids().to_vec();
        let started = Instant::now();
        let mut written = vec![next(&mut model, &prompt, 0)?];
        let first = started.elapsed();
        while written.len() < wanted {
            let position = prompt.len() + written.len() - 1;
            let last = [written[written.len() - 1]];
            written.push(next(&mut model, &last, position)?);
        }
        let rest = started.elapsed() - first;
        println!(
            "{} prompt tokens: {:.1} a second; {} written: {:.1} a second after the first",
            prompt.len(),
            prompt.len() as f64 / first.as_secs_f64(),
            written.len(),
            (written.len() - 1) as f64 / rest.as_secs_f64()
        );
        texts.push(tokenizer.decode(&written, true)?);
    }
    println!("the same text each time: {}", texts.iter().all(|text| text == &texts[0]));
    Ok(())
}

/// The likeliest token after `tokens`, which begin at `position`. Position 0 begins anew.
fn next(model: &mut ModelWeights, tokens: &[u32], position: usize) -> Result<u32, candle_core::Error> {
    let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
    model.forward(&input, position)?.squeeze(0)?.argmax(0)?.to_scalar()
}
