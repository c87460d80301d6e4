//! SHA-256 as FIPS 180-4 has it, for the checksum of addresses.
//!
//! Some forty bytes are hashed, once in a blue moon: no crate is worth that.

/// How many rounds there are, one for each of the first primes.
const ROUNDS: usize = 64;

/// The hash of a text that fits into one block.
///
/// `message` must be shorter than 56 bytes; addresses and hashes are.
#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
pub(super) fn short(message: &[u8]) -> [u8; 32] {
    debug_assert!(message.len() < 56, "one block");
    let mut block = [0_u8; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());

    let mut words = [0_u32; ROUNDS];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..ROUNDS {
        let (a, b) = (words[at - 15], words[at - 2]);
        let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
    }

    let start = START;
    let mut state = start;
    for at in 0..ROUNDS {
        let [a, b, c, d, e, f, g, h] = state;
        let choice = e & f ^ !e & g;
        let majority = a & b ^ a & c ^ b & c;
        let low = h
            .wrapping_add(e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            .wrapping_add(choice)
            .wrapping_add(ROUND[at])
            .wrapping_add(words[at]);
        let high =
            (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
        state = [low.wrapping_add(high), a, b, c, d.wrapping_add(low), e, f, g];
    }

    let mut output = [0; 32];
    for (bytes, (a, b)) in output.chunks_exact_mut(4).zip(state.iter().zip(start)) {
        bytes.copy_from_slice(&a.wrapping_add(b).to_be_bytes());
    }
    output
}

/// The fractions of the square roots of the first eight primes.
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The fractions of the cube roots of the first 64 primes.
const ROUND: [u32; ROUNDS] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
