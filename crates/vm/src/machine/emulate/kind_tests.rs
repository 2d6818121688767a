// SPDX-License-Identifier: MIT OR Apache-2.0
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::{Kind, memory_index, of};

/// Every opcode of one and of two bytes with each prefix that changes its meaning, a memory operand and each extension
/// of the opcode.
fn instructions() -> impl Iterator<Item = Instruction> {
    let prefixes: [&[u8]; 7] = [&[], &[0x66], &[0x48], &[0x44], &[0xf3], &[0xf2], &[0x66, 0x48]];
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
fn an_instruction_without_an_operand_in_memory_is_refused() {
    let mut refused = 0;
    for instruction in instructions() {
        let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        if !has_memory && !instruction.is_string_instruction() {
            assert!(of(&instruction).is_err(), "{:?}", instruction.code());
            refused += 1;
        }
    }
    assert!(refused > 500, "only {refused}");
}

#[test]
fn an_operand_in_memory_is_one_of_the_first_two() {
    let mut places = [0; 2];
    for instruction in instructions() {
        let expected = (0..instruction.op_count()).find(|operand| instruction.op_kind(*operand) == OpKind::Memory);
        assert_eq!(memory_index(&instruction), expected, "{:?}", instruction.code());
        expected.into_iter().for_each(|place| places[place as usize] += 1);
    }
    assert!(places.iter().all(|count| *count > 500), "{places:?}");
}

#[test]
fn the_width_is_that_of_memory_or_a_part_of_it() {
    let mut compared = 0;
    for instruction in instructions() {
        let Ok((kind, size)) = of(&instruction) else { continue };
        let (bytes, all) = (size.bytes(), instruction.memory_size().size());
        let expected = match kind {
            Kind::CompareExchangePair => all / 2,
            Kind::Vector(_) => all.min(8),
            _ => all,
        };
        assert_eq!(bytes, expected, "{:?}", instruction.code());
        compared += 1;
    }
    assert!(compared > 2000, "only {compared}");
}

#[test]
fn a_copy_of_a_string_and_a_move_of_a_vector_share_a_name_and_are_distinguished() {
    let decode = |bytes: &[u8]| Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let (string, vector) = (decode(&[0xa5]), decode(&[0xf2, 0x0f, 0x10, 0x03]));
    assert_eq!([string.mnemonic(), vector.mnemonic()], [Mnemonic::Movsd; 2]);
    assert!(matches!(of(&string), Ok((Kind::String(_), _))));
    assert!(matches!(of(&vector), Ok((Kind::Vector(_), _))));
}
