// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and their seals; files that arrive in pieces.

use seal::{Announced, Arrival, Check, Portable, Seal, SecretKey, Sha256, Trust, Unpacker};

use crate::Input;

/// A file with any end, one with a seal of which something was changed, or pieces of a file in any order.
pub fn seal(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 4 {
        0 => {
            let _ = check(input.0);
            let _ = seal::judge_bundle(input.0, |_| [0; 32], Trust::Any);
        }
        1 => changed(&mut input),
        2 => packed(&mut input),
        _ => pieces(&mut input),
    }
}

fn check(file: &[u8]) -> Result<seal::Origin, seal::SealError> {
    let (image, seal) = Seal::split(file)?;
    let mut check = Check::new(Portable, image.len() as u64);
    while !check.step(100, |at| &image[at as usize..]) {}
    seal.judge(&check.digest(), Trust::Any)
}

/// Only an unchanged file is taken.
fn changed(input: &mut Input<'_>) {
    let (place, change, is_signed) = (usize::from(input.u16()), input.u8(), input.u8() & 1 == 1);
    let key = SecretKey::from_seed([9; 32]);
    let seal = Seal::of(input.0, is_signed.then_some(&key));
    let mut file = [input.0, zerocopy::IntoBytes::as_bytes(&seal)].concat();
    let place = place % file.len();
    file[place] ^= change;
    assert_eq!(check(&file).is_ok(), change == 0, "byte {place} of {}", file.len());
}

/// Whatever packed pieces are, each is refused or fills its place, and nothing else.
fn packed(input: &mut Input<'_>) {
    let (mut unpacker, mut memory, mut known) = (Unpacker::default(), [7; 4096], 0);
    while !input.0.is_empty() {
        let end = known + usize::from(input.u16()) % 512;
        let before = memory;
        let Some(place) = memory.get_mut(known..end) else { return };
        let is_unpacked = unpacker.unpack(input.string(), place).is_ok();
        assert!(memory[..known] == before[..known] && memory[end..] == before[end..]);
        if !is_unpacked {
            return;
        }
        known = end;
    }
}

/// However pieces come, what counts as whole is what was announced.
fn pieces(input: &mut Input<'_>) {
    let file: Vec<u8> = input.string().to_vec();
    let mut hash = Sha256::new(Portable);
    hash.update(&file);
    let announced = Announced { kind: (), bytes: file.len() as u64, digest: hash.finish() };
    let (mut arrival, mut memory) = (Arrival::new(Portable, announced, 0, 10), vec![0; file.len()]);
    while !input.0.is_empty() {
        let offset = u64::from(input.u8());
        let piece = input.string();
        let before = arrival.next_offset();
        match arrival.take(offset, piece, &mut memory, 0) {
            Ok(next) => assert!(next == before || next == before + piece.len() as u64),
            Err(_) => return,
        }
        assert!(!arrival.is_whole() || file.is_empty() || memory == file);
    }
}
