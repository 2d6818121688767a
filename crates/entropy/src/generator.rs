// SPDX-License-Identifier: MIT OR Apache-2.0
//! ChaCha20 with a new key for each request.

use core::fmt;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

use crate::seed::{Seed, Source, Unavailable, seed};

/// Requests between two seeds.
const REQUESTS: u32 = 1024;

/// A generator of random bytes.
pub struct Generator<S> {
    source: S,
    cipher: ChaCha20Rng,
    /// Requests until the next seed.
    left: u32,
}

/// Its key is in no log.
impl<S> fmt::Debug for Generator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<S: Source> Generator<S> {
    /// A generator with a seed of the CPU's.
    ///
    /// # Errors
    /// [`Unavailable`] if there is none.
    pub fn new(mut source: S) -> Result<Self, Unavailable> {
        let cipher = ChaCha20Rng::from_seed(seed(&mut source)?);
        Ok(Self { source, cipher, left: REQUESTS })
    }

    /// Fills a buffer. The key is replaced first: the filled bytes do not follow from the new key.
    pub fn fill(&mut self, into: &mut [u8]) {
        let mut key = Seed::default();
        self.cipher.fill_bytes(&mut key);
        self.cipher.fill_bytes(into);
        self.left -= 1;
        if self.left == 0 {
            self.left = REQUESTS;
            // Where the source has failed since, the key alone is as good as it was.
            if let Ok(fresh) = seed(&mut self.source) {
                key.iter_mut().zip(fresh).for_each(|(byte, fresh)| *byte ^= fresh);
            }
        }
        self.cipher = ChaCha20Rng::from_seed(key);
    }
}
