// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which instructions are carried out, and how much of memory each touches.
//!
//! The decoder could tell both for any instruction, by tables of 20 KB; for the few that are carried out, runs of neighbouring codes
//! and their operands say as much. A test compares the two for every code there is.

use iced_x86::{Code, Instruction, OpKind};

use super::alu::Operation;
use super::{Refused, register};
use crate::addr::AccessSize;

/// What an instruction does with its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MOV.
    Move,
    /// MOVZX.
    ZeroExtend,
    /// MOVSX.
    SignExtend,
    /// MOVSXD.
    SignExtendDoubleword,
    /// STOS.
    Store,
    /// MOVS.
    Copy,
    /// XCHG.
    Exchange,
    /// Arithmetic and logic.
    Arithmetic(Operation),
}

/// The first run that a code is in, from its first code to its last.
macro_rules! in_runs {
    ($code:expr, $($kind:expr => $($first:ident - $last:ident),+;)+) => {
        $($(if (Code::$first as usize..=Code::$last as usize).contains(&($code as usize)) {
            return Some(($kind, $code as usize - Code::$first as usize));
        })+)+
    };
}

/// What an instruction does with its memory operand, and how wide that is; refused if it is none of these.
#[inline(never)]
pub fn of(instruction: &Instruction) -> Result<(Kind, AccessSize), Refused> {
    let refused = Refused::Unsupported(instruction.code());
    let (kind, place) = Kind::with_place(instruction.code()).ok_or(refused)?;
    let bytes = match kind {
        Kind::Move | Kind::Exchange | Kind::Arithmetic(_) => return Ok((kind, beside(instruction)?)),
        Kind::Store | Kind::Copy => 1 << place,
        Kind::ZeroExtend | Kind::SignExtend => 1 << (place / 3),
        Kind::SignExtendDoubleword => 2 << usize::from(place > 0),
    };
    Ok((kind, AccessSize::from_bytes(bytes).ok_or(refused)?))
}

impl Kind {
    /// The kind of a code, and its place in its run: they are ordered by width.
    #[rustfmt::skip]
    fn with_place(code: Code) -> Option<(Self, usize)> {
        use Kind::Arithmetic;
        use Operation::{Add, And, Cmp, Or, Sub, Test, Xor};
        in_runs! { code,
            Self::Move => Mov_rm8_r8 - Mov_r64_rm64, Mov_AL_moffs8 - Mov_moffs64_RAX, Mov_rm8_imm8 - Mov_rm8_imm8,
                Mov_rm16_imm16 - Mov_rm64_imm32;
            Self::ZeroExtend => Movzx_r16_rm8 - Movzx_r64_rm16;
            Self::SignExtend => Movsx_r16_rm8 - Movsx_r64_rm16;
            Self::SignExtendDoubleword => Movsxd_r16_rm16 - Movsxd_r64_rm32;
            Self::Store => Stosb_m8_AL - Stosq_m64_RAX;
            Self::Copy => Movsb_m8_m8 - Movsq_m64_m64;
            Self::Exchange => Xchg_rm8_r8 - Xchg_rm64_r64;
            Arithmetic(Test) => Test_rm8_r8 - Test_rm64_r64, Test_rm8_imm8 - Test_rm8_imm8_F6r1,
                Test_rm16_imm16 - Test_rm64_imm32_F7r1;
            Arithmetic(Add) => Add_rm8_r8 - Add_r64_rm64, Add_rm8_imm8 - Add_rm8_imm8, Add_rm16_imm16 - Add_rm64_imm32,
                Add_rm8_imm8_82 - Add_rm8_imm8_82, Add_rm16_imm8 - Add_rm64_imm8;
            Arithmetic(Or) => Or_rm8_r8 - Or_r64_rm64, Or_rm8_imm8 - Or_rm8_imm8, Or_rm16_imm16 - Or_rm64_imm32,
                Or_rm8_imm8_82 - Or_rm8_imm8_82, Or_rm16_imm8 - Or_rm64_imm8;
            Arithmetic(And) => And_rm8_r8 - And_r64_rm64, And_rm8_imm8 - And_rm8_imm8, And_rm16_imm16 - And_rm64_imm32,
                And_rm8_imm8_82 - And_rm8_imm8_82, And_rm16_imm8 - And_rm64_imm8;
            Arithmetic(Sub) => Sub_rm8_r8 - Sub_r64_rm64, Sub_rm8_imm8 - Sub_rm8_imm8, Sub_rm16_imm16 - Sub_rm64_imm32,
                Sub_rm8_imm8_82 - Sub_rm8_imm8_82, Sub_rm16_imm8 - Sub_rm64_imm8;
            Arithmetic(Xor) => Xor_rm8_r8 - Xor_r64_rm64, Xor_rm8_imm8 - Xor_rm8_imm8, Xor_rm16_imm16 - Xor_rm64_imm32,
                Xor_rm8_imm8_82 - Xor_rm8_imm8_82, Xor_rm16_imm8 - Xor_rm64_imm8;
            Arithmetic(Cmp) => Cmp_rm8_r8 - Cmp_r64_rm64, Cmp_rm8_imm8 - Cmp_rm8_imm8, Cmp_rm16_imm16 - Cmp_rm64_imm32,
                Cmp_rm8_imm8_82 - Cmp_rm8_imm8_82, Cmp_rm16_imm8 - Cmp_rm64_imm8;
        }
        None
    }
}

/// As wide as the operand beside it.
fn beside(instruction: &Instruction) -> Result<AccessSize, Refused> {
    let other = u32::from(instruction.op0_kind() == OpKind::Memory);
    Ok(match instruction.op_kind(other) {
        OpKind::Register => return register::of(instruction, other).map(register::Operand::size),
        OpKind::Immediate8 => AccessSize::Byte,
        OpKind::Immediate16 | OpKind::Immediate8to16 => AccessSize::Word,
        OpKind::Immediate32 | OpKind::Immediate8to32 => AccessSize::Dword,
        OpKind::Immediate32to64 | OpKind::Immediate8to64 => AccessSize::Qword,
        _ => return Err(Refused::Unsupported(instruction.code())),
    })
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
