// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every fuzz target for a moment, without libFuzzer: the same pseudo-random inputs and the same changes of the seeds
//! each time. No target takes more than its share of time; `BATON_FUZZ_MS` gives each as many milliseconds, and inputs
//! without end.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baton_fuzz::{Body, TARGETS};

const SHARE: Duration = Duration::from_millis(3000);
const INPUTS: u64 = 4000;
const MOST_BYTES: u64 = 700;

/// Marsaglia's xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Bytes; half of the inputs are mostly small numbers, which get further in many formats.
    fn bytes(&mut self) -> Vec<u8> {
        let is_tame = self.next() & 1 == 0;
        let mask = |random: &mut Self| if is_tame && random.next() & 3 != 0 { 0x0f } else { 0xff };
        (0..self.below(MOST_BYTES)).map(|_| self.next() as u8 & mask(self)).collect()
    }

    fn changed(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len().max(1) as u64) as usize;
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.next() as u8),
                _ if bytes.is_empty() => {}
                2 => bytes[at] ^= 1 << self.below(8),
                _ => bytes[at] = self.next() as u8,
            }
        }
        bytes
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The committed inputs of a target.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(root().join("seeds").join(name)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a readable seed")).collect()
}

/// Returns how long a target may take, and how many inputs it gets at most.
fn share() -> (Duration, u64) {
    let wanted = env::var("BATON_FUZZ_MS").ok().and_then(|text| text.parse().ok());
    wanted.map_or((SHARE, INPUTS), |milliseconds| (Duration::from_millis(milliseconds), u64::MAX))
}

fn run(name: &str, body: Body) -> u64 {
    let (start, mut random) = (Instant::now(), Random(0x9e37_79b9_7f4a_7c15));
    let seeds = seeds(name);
    seeds.iter().for_each(|seed| body(seed));
    body(&[]);
    let (time, inputs) = share();
    for count in 0..inputs {
        if start.elapsed() > time {
            return count;
        }
        body(&random.bytes());
        if let Some(seed) = seeds.get(count as usize % seeds.len().max(1)) {
            body(&random.changed(seed));
        }
    }
    inputs
}

#[test]
fn no_target_panics() {
    let next = AtomicUsize::new(0);
    let some = || {
        while let Some((name, body)) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let count = run(name, *body);
            assert!(count > 0, "{name} takes longer for one input than its share of time");
            println!("{name}: {count} inputs");
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(some))));
}

#[test]
fn every_target_has_its_program() {
    let manifest = fs::read_to_string(root().join("libfuzzer/Cargo.toml")).expect("the manifest");
    for (name, _) in TARGETS {
        let source =
            fs::read_to_string(root().join(format!("libfuzzer/fuzz_targets/{name}.rs"))).expect("the program's source");
        assert!(source.contains(&format!("baton_fuzz::{name}(data)")), "{name} runs its own body");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is in Cargo.toml");
    }
    let programs = fs::read_dir(root().join("libfuzzer/fuzz_targets")).expect("the folder").count();
    assert_eq!(programs, TARGETS.len());
}

#[test]
fn every_folder_of_seeds_is_a_targets() {
    let Ok(entries) = fs::read_dir(root().join("seeds")) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(TARGETS.iter().any(|(target, _)| *target == name), "{}", Path::new(name).display());
    }
}
