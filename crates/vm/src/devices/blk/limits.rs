// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate at which a driver may ask. Requests above it stay in the ring: the driver waits, and no request fails.

use rate::Bucket;

/// The least that goes at once.
const LEAST_REQUESTS: u64 = 4;
const LEAST_BYTES: u64 = 128 << 10;

/// The most that a driver may ask for in a second; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests.
    pub requests_per_s: Option<u32>,
    /// Bytes that are read or written.
    pub bytes_per_s: Option<u64>,
}

/// The remainder of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    requests: Option<Bucket>,
    bytes: Option<Bucket>,
}

impl Buckets {
    pub fn new(limits: Limits) -> Self {
        Self {
            requests: limits.requests_per_s.map(|rate| Bucket::new(rate.into(), LEAST_REQUESTS, 0)),
            bytes: limits.bytes_per_s.map(|rate| Bucket::new(rate, LEAST_BYTES, 0)),
        }
    }

    /// Returns when a request may be taken, if that is not now.
    pub fn wait(&mut self, now_ns: u64) -> Option<u64> {
        [&mut self.requests, &mut self.bytes]
            .into_iter()
            .flatten()
            .filter_map(|bucket| bucket.check(now_ns).err())
            .max()
    }

    /// A request that moves so many bytes has been taken.
    pub fn take(&mut self, bytes: u32) {
        self.requests.iter_mut().for_each(|bucket| bucket.take(1));
        self.bytes.iter_mut().for_each(|bucket| bucket.take(bytes.into()));
    }
}
