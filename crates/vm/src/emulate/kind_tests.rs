// SPDX-License-Identifier: MIT OR Apache-2.0
use std::format;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::{Kind, of};
use crate::emulate::alu::Operation;

/// The decoder's own name for what we call `kind`.
fn is_named(kind: Kind, mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Add, And, Cmp, Mov, Or, Sub, Test, Xchg, Xor};
    match kind {
        Kind::Move => mnemonic == Mov,
        Kind::ZeroExtend => mnemonic == Mnemonic::Movzx,
        Kind::SignExtend => mnemonic == Mnemonic::Movsx,
        Kind::SignExtendDoubleword => mnemonic == Mnemonic::Movsxd,
        Kind::Store => matches!(mnemonic, Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq),
        Kind::Copy => matches!(mnemonic, Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq),
        Kind::Exchange => mnemonic == Xchg,
        Kind::Arithmetic(operation) => {
            mnemonic
                == match operation {
                    Operation::And => And,
                    Operation::Or => Or,
                    Operation::Xor => Xor,
                    Operation::Add => Add,
                    Operation::Sub => Sub,
                    Operation::Test => Test,
                    Operation::Cmp => Cmp,
                }
        }
    }
}

/// Codes with a general purpose register or an immediate beside memory, by their names.
fn touches_memory(name: &str) -> bool {
    let is_special = ["Sreg", "xmm", "cr", "dr", "tr"].iter().any(|part| name.contains(part));
    let has_memory = ["_rm8", "_rm16", "_rm32", "_rm64", "_m8", "_m16", "_m32", "_m64", "moffs"];
    !is_special && has_memory.iter().any(|part| name.contains(part))
}

#[test]
fn every_code_of_these_kinds_is_known_and_no_other() {
    for code in Code::values() {
        let name = format!("{code:?}");
        match Kind::with_place(code) {
            Some((kind, _)) => {
                assert!(is_named(kind, code.mnemonic()) && touches_memory(&name), "{name} is no {kind:?}")
            }
            None => {
                let operations = [Operation::And, Operation::Or, Operation::Xor, Operation::Add, Operation::Sub];
                let operations = operations.into_iter().chain([Operation::Test, Operation::Cmp]).map(Kind::Arithmetic);
                let moves = [Kind::Move, Kind::ZeroExtend, Kind::SignExtend, Kind::SignExtendDoubleword];
                let kinds = operations.chain(moves).chain([Kind::Store, Kind::Copy, Kind::Exchange]);
                let is_one = kinds.into_iter().any(|kind| is_named(kind, code.mnemonic()));
                assert!(!is_one || !touches_memory(&name), "{name} is not known");
            }
        }
    }
}

/// Every opcode of one and of two bytes with each prefix that changes widths, a memory operand and each extension of the opcode.
fn instructions() -> impl Iterator<Item = Instruction> {
    let prefixes: [&[u8]; 4] = [&[], &[0x66], &[0x48], &[0x44]];
    let opcodes = (0..=0xff_u8).flat_map(|byte| [[0x0f, byte, 2], [byte, 0, 1]]);
    let forms = opcodes.flat_map(move |opcode| (0..8_u8).map(move |extension| (opcode, extension)));
    let all = forms.flat_map(move |form| [16_u32, 32, 64].map(|mode| (form, mode)));
    all.flat_map(move |((opcode, extension), mode)| {
        prefixes.map(|prefix| {
            let mut bytes = [0_u8; 15];
            let used = &opcode[..usize::from(opcode[2])];
            let start = prefix.len() + used.len();
            bytes[..prefix.len()].copy_from_slice(prefix);
            bytes[prefix.len()..start].copy_from_slice(used);
            bytes[start] = extension << 3 | 3;
            Decoder::new(mode, &bytes, DecoderOptions::NONE).decode()
        })
    })
}

#[test]
fn the_width_is_what_the_decoder_says_it_is() {
    let mut compared = 0;
    for instruction in instructions() {
        let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        if Kind::with_place(instruction.code()).is_some() && (has_memory || instruction.is_string_instruction()) {
            let ours = of(&instruction).map(|(_, size)| size.bytes());
            assert_eq!(ours, Ok(instruction.memory_size().size()), "{:?}", instruction.code());
            compared += 1;
        }
    }
    assert!(compared > 500, "only {compared}");
}
