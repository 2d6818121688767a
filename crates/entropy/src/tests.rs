// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// A CPU with instructions that return these words; `None` for a try without one.
#[derive(Default)]
struct Cpu {
    seeds: Option<Vec<Option<u64>>>,
    randoms: Option<Vec<Option<u64>>>,
    pauses: u32,
}

impl Source for &mut Cpu {
    fn has_rdseed(&self) -> bool {
        self.seeds.is_some()
    }
    fn has_rdrand(&self) -> bool {
        self.randoms.is_some()
    }
    fn rdseed(&mut self) -> Option<u64> {
        self.seeds.as_mut().and_then(Vec::pop).flatten()
    }
    fn rdrand(&mut self) -> Option<u64> {
        self.randoms.as_mut().and_then(Vec::pop).flatten()
    }
    fn pause(&mut self) {
        self.pauses += 1;
    }
}

fn words(words: &[u64]) -> Option<Vec<Option<u64>>> {
    Some(words.iter().rev().copied().map(Some).collect())
}

/// The first bytes of a generator with this seed.
fn bytes(seed: &[u64; 4], requests: usize, each: usize) -> Vec<Vec<u8>> {
    let mut cpu = Cpu { seeds: words(seed), ..Cpu::default() };
    let mut generator = Generator::new(&mut cpu).expect("there is a seed");
    let fill = |_| {
        let mut into = vec![0; each];
        generator.fill(&mut into);
        into
    };
    (0..requests).map(fill).collect()
}

#[test]
fn rdseed_comes_before_rdrand() {
    let mut cpu = Cpu { seeds: words(&[1, 2, 3, 4]), randoms: words(&[5, 6, 7, 8]), pauses: 0 };
    let seed = seed(&mut &mut cpu).expect("there is one");
    assert_eq!((seed[0], seed[8], seed[16], seed[24]), (1, 2, 3, 4));
}

#[test]
fn a_dry_rdseed_is_tried_again_and_replaced_after_a_bounded_number_of_tries() {
    let mut cpu = Cpu { seeds: Some(vec![Some(4), Some(3), None, Some(2), None, None, Some(1)]), ..Cpu::default() };
    assert!(seed(&mut &mut cpu).is_ok());
    assert_eq!(cpu.pauses, 3);
    let mut cpu = Cpu { seeds: Some(vec![]), randoms: words(&[5, 6, 7, 8]), pauses: 0 };
    assert_eq!(seed(&mut &mut cpu).expect("of RDRAND")[0], 5);
    assert!(cpu.pauses < 4 * 10_000);
}

#[test]
fn without_a_good_source_there_is_no_seed() {
    assert_eq!(seed(&mut &mut Cpu::default()), Err(Unavailable::NoInstruction));
    let mut cpu = Cpu { randoms: Some(vec![]), ..Cpu::default() };
    assert_eq!(seed(&mut &mut cpu), Err(Unavailable::Dry { tries: 4096 }));
    let mut cpu = Cpu { randoms: words(&[u64::MAX; 4]), ..Cpu::default() };
    assert_eq!(seed(&mut &mut cpu), Err(Unavailable::Stuck { word: u64::MAX }));
    assert!(Unavailable::NoInstruction.to_string().contains("leave rng out"));
}

/// RFC 8439, appendix A.1, test vector 1: the first key stream block of the key of zeros. The generator's first 32
/// bytes are its next key; the guest gets what follows.
#[test]
fn the_cipher_is_chacha20() {
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::{Rng as _, SeedableRng as _};
    let mut block = [0; 64];
    ChaCha20Rng::from_seed([0; 32]).fill_bytes(&mut block);
    assert_eq!(block[..8], [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
    assert_eq!(block[56..], [0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86]);
}

#[test]
fn the_key_is_replaced_at_each_request() {
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::{Rng as _, SeedableRng as _};
    let seed = [1_u64, 2, 3, 4];
    let mut key: Seed = seed.map(u64::to_le_bytes).as_flattened().try_into().expect("32 bytes");
    for given in bytes(&seed, 5, 100) {
        let mut block = [0; 132];
        ChaCha20Rng::from_seed(key).fill_bytes(&mut block);
        assert_eq!(given, block[32..]);
        key.copy_from_slice(&block[..32]);
    }
}

#[test]
fn a_fresh_seed_comes_in_after_so_many_requests() {
    let seed = [1, 2, 3, 4];
    let fresh = |fifth: u64| {
        let mut cpu = Cpu { seeds: words(&[1, 2, 3, 4, fifth, 6, 7, 8]), ..Cpu::default() };
        let mut generator = Generator::new(&mut cpu).expect("there is a seed");
        let mut all = Vec::new();
        for _ in 0..1026 {
            let mut into = [0; 16];
            generator.fill(&mut into);
            all.push(into);
        }
        all
    };
    let (one, other, none) = (fresh(5), fresh(50), bytes(&seed, 1026, 16));
    assert_eq!(one[..1024], other[..1024]);
    assert_ne!(one[1024], other[1024]);
    assert_ne!(one[1024][..], none[1024][..], "the source was dry");
}

proptest! {
    #[test]
    fn bytes_differ_between_requests_seeds_and_places(seed: [u64; 4], flip in 0_usize..256) {
        prop_assume!(seed.iter().any(|word| *word != seed[0]));
        let given = bytes(&seed, 3, 64);
        prop_assert!(given[0] != given[1] && given[1] != given[2]);
        let mut other = seed;
        other[flip / 64] ^= 1 << (flip % 64);
        prop_assume!(other.iter().any(|word| *word != other[0]));
        let changed = bytes(&other, 1, 64);
        let differs: u32 = given[0].iter().zip(&changed[0]).map(|(a, b)| (a ^ b).count_ones()).sum();
        prop_assert!((150..362).contains(&differs), "of 512 bits {differs} differ");
    }
}
