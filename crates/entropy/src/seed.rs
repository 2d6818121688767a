// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeds from the CPU's instructions.

use core::fmt;

/// A seed.
pub type Seed = [u8; 32];

const WORDS: usize = size_of::<Seed>() / size_of::<u64>();
/// Tries for one word. RDSEED runs dry for microseconds while others use it; RDRAND never does for ten tries, unless it
/// is broken (Intel SDM vol. 1, sections 7.3.17.1 and 7.3.17.2).
const TRIES: u32 = 4096;

/// The CPU's instructions, and a pause between two tries.
pub trait Source {
    /// Returns whether the CPU has RDSEED.
    fn has_rdseed(&self) -> bool;
    /// Returns whether the CPU has RDRAND.
    fn has_rdrand(&self) -> bool;
    /// One try of RDSEED; `None` if there is nothing at the moment.
    fn rdseed(&mut self) -> Option<u64>;
    /// One try of RDRAND.
    fn rdrand(&mut self) -> Option<u64>;
    /// Waits a moment before the next try.
    fn pause(&mut self);
}

/// There is no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The CPU has neither instruction.
    NoInstruction,
    /// It has given nothing in so many tries.
    Dry {
        /// Tries.
        tries: u32,
    },
    /// It gives the same words again and again.
    Stuck {
        /// The word.
        word: u64,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInstruction => f.write_str("this CPU has neither RDSEED nor RDRAND; leave rng out for this guest"),
            Self::Dry { tries } => write!(f, "RDSEED and RDRAND gave nothing in {tries} tries; update the microcode"),
            Self::Stuck { word } => write!(f, "RDRAND repeats {word:#x}; update firmware and microcode"),
        }
    }
}

/// Reads a seed, in a bounded number of tries.
///
/// # Errors
/// [`Unavailable`] if the CPU has no source, or it is broken.
pub fn seed(source: &mut impl Source) -> Result<Seed, Unavailable> {
    if !source.has_rdseed() && !source.has_rdrand() {
        return Err(Unavailable::NoInstruction);
    }
    let mut words = [0; WORDS];
    for word in &mut words {
        *word = read(source)?;
    }
    // Four equal words: one in 2^192 of a good source. Some CPUs' RDRAND gave only ones after a resume.
    if words.iter().all(|word| *word == words[0]) {
        return Err(Unavailable::Stuck { word: words[0] });
    }
    let mut seed = Seed::default();
    seed.chunks_exact_mut(size_of::<u64>())
        .zip(words)
        .for_each(|(part, word)| part.copy_from_slice(&word.to_le_bytes()));
    Ok(seed)
}

/// A word of RDSEED, or of RDRAND where that is missing or dry.
fn read(source: &mut impl Source) -> Result<u64, Unavailable> {
    for _ in 0..if source.has_rdseed() { TRIES } else { 0 } {
        if let Some(word) = source.rdseed() {
            return Ok(word);
        }
        source.pause();
    }
    for _ in 0..if source.has_rdrand() { TRIES } else { 0 } {
        if let Some(word) = source.rdrand() {
            return Ok(word);
        }
        source.pause();
    }
    Err(Unavailable::Dry { tries: TRIES })
}
