#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| probity_fuzz::judge(bytes));
