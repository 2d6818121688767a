// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated instructions, and the number of bytes of memory that each accesses.

use iced_x86::{Instruction, Mnemonic};

use super::Refused;
use super::alu::{Operation, Unary};
use super::bits::{BitOperation, BitScan};
use super::compare_exchange;
use super::multiply::Sign;
use super::operand::memory_index;
use super::shift::{Direction, Shift};
use super::string::StringKind;
use super::vector_move::VectorMove;
use crate::addr::AccessSize;

/// Operation of an instruction on its operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MOV and MOVNTI.
    Move,
    /// MOVBE.
    MoveSwapped,
    /// MOVZX.
    ZeroExtend,
    /// MOVSX and MOVSXD.
    SignExtend,
    /// CMOVcc.
    ConditionalMove,
    /// SETcc.
    ConditionalSet,
    /// XCHG.
    Exchange,
    /// XADD.
    ExchangeAdd,
    /// CMPXCHG.
    CompareExchange,
    /// CMPXCHG8B and CMPXCHG16B.
    CompareExchangePair,
    /// Arithmetic and logic with two operands.
    Arithmetic(Operation),
    /// INC, DEC, NEG and NOT.
    Unary(Unary),
    /// Shifts and rotates.
    Shift(Shift),
    /// SHLD and SHRD.
    DoubleShift(Direction),
    /// BT and its kin.
    Bit(BitOperation),
    /// Searching and counting bits.
    BitScan(BitScan),
    /// MUL and IMUL.
    Multiply(Sign),
    /// DIV and IDIV.
    Divide(Sign),
    /// PUSH.
    Push,
    /// POP.
    Pop,
    /// MOVS, STOS, LODS, CMPS and SCAS.
    String(StringKind),
    /// Moves of vector registers.
    Vector(VectorMove),
}

/// Returns the operation of an instruction on its operand in memory, and its width; refused if it is not emulated.
/// Vector moves, and CMPXCHG8B and CMPXCHG16B, access several times the width.
#[inline(never)]
pub fn of(instruction: &Instruction) -> Result<(Kind, AccessSize), Refused> {
    let refused = Refused::Unsupported(instruction.code());
    let kind = StringKind::of(instruction.code()).map(Kind::String);
    let has_memory = memory_index(instruction).is_some();
    let kind = match kind {
        None if has_memory => Kind::named(instruction.mnemonic()).ok_or(refused)?,
        kind => kind.ok_or(refused)?,
    };
    let size = match kind {
        Kind::CompareExchangePair => Some(compare_exchange::half(instruction.code())),
        _ => AccessSize::from_bytes(instruction.memory_size().size().min(8)),
    };
    Ok((kind, size.ok_or(refused)?))
}

impl Kind {
    /// The kind of the instructions with an operand in memory that have this name.
    fn named(mnemonic: Mnemonic) -> Option<Self> {
        use Mnemonic as M;
        Some(match mnemonic {
            M::Mov | M::Movnti => Self::Move,
            M::Movbe => Self::MoveSwapped,
            M::Movzx => Self::ZeroExtend,
            M::Movsx | M::Movsxd => Self::SignExtend,
            M::Xchg => Self::Exchange,
            M::Xadd => Self::ExchangeAdd,
            M::Cmpxchg => Self::CompareExchange,
            M::Cmpxchg8b | M::Cmpxchg16b => Self::CompareExchangePair,
            M::Mul => Self::Multiply(Sign::Unsigned),
            M::Imul => Self::Multiply(Sign::Signed),
            M::Div => Self::Divide(Sign::Unsigned),
            M::Idiv => Self::Divide(Sign::Signed),
            M::Push => Self::Push,
            M::Pop => Self::Pop,
            M::Shld => Self::DoubleShift(Direction::Left),
            M::Shrd => Self::DoubleShift(Direction::Right),
            other => return Self::of_family(other),
        })
    }

    fn of_family(mnemonic: Mnemonic) -> Option<Self> {
        let kind = operation(mnemonic).map(Self::Arithmetic).or_else(|| unary(mnemonic).map(Self::Unary));
        let kind = kind.or_else(|| shift(mnemonic).map(Self::Shift)).or_else(|| bit(mnemonic).map(Self::Bit));
        let kind = kind.or_else(|| bit_scan(mnemonic).map(Self::BitScan));
        kind.or_else(|| VectorMove::of(mnemonic).map(Self::Vector)).or_else(|| conditional(mnemonic))
    }
}

fn operation(mnemonic: Mnemonic) -> Option<Operation> {
    Some(match mnemonic {
        Mnemonic::And => Operation::And,
        Mnemonic::Or => Operation::Or,
        Mnemonic::Xor => Operation::Xor,
        Mnemonic::Add => Operation::Add,
        Mnemonic::Adc => Operation::Adc,
        Mnemonic::Sub => Operation::Sub,
        Mnemonic::Sbb => Operation::Sbb,
        Mnemonic::Test => Operation::Test,
        Mnemonic::Cmp => Operation::Cmp,
        _ => return None,
    })
}

fn unary(mnemonic: Mnemonic) -> Option<Unary> {
    Some(match mnemonic {
        Mnemonic::Inc => Unary::Inc,
        Mnemonic::Dec => Unary::Dec,
        Mnemonic::Neg => Unary::Neg,
        Mnemonic::Not => Unary::Not,
        _ => return None,
    })
}

fn shift(mnemonic: Mnemonic) -> Option<Shift> {
    Some(match mnemonic {
        Mnemonic::Rol => Shift::Rol,
        Mnemonic::Ror => Shift::Ror,
        Mnemonic::Rcl => Shift::Rcl,
        Mnemonic::Rcr => Shift::Rcr,
        Mnemonic::Shl | Mnemonic::Sal => Shift::Shl,
        Mnemonic::Shr => Shift::Shr,
        Mnemonic::Sar => Shift::Sar,
        _ => return None,
    })
}

fn bit(mnemonic: Mnemonic) -> Option<BitOperation> {
    Some(match mnemonic {
        Mnemonic::Bt => BitOperation::Bt,
        Mnemonic::Bts => BitOperation::Bts,
        Mnemonic::Btr => BitOperation::Btr,
        Mnemonic::Btc => BitOperation::Btc,
        _ => return None,
    })
}

fn bit_scan(mnemonic: Mnemonic) -> Option<BitScan> {
    Some(match mnemonic {
        Mnemonic::Bsf => BitScan::Bsf,
        Mnemonic::Bsr => BitScan::Bsr,
        Mnemonic::Tzcnt => BitScan::Tzcnt,
        Mnemonic::Lzcnt => BitScan::Lzcnt,
        Mnemonic::Popcnt => BitScan::Popcnt,
        _ => return None,
    })
}

fn conditional(mnemonic: Mnemonic) -> Option<Kind> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Cmovo | M::Cmovno | M::Cmovb | M::Cmovae | M::Cmove | M::Cmovne | M::Cmovbe | M::Cmova => {
            Kind::ConditionalMove
        }
        M::Cmovs | M::Cmovns | M::Cmovp | M::Cmovnp | M::Cmovl | M::Cmovge | M::Cmovle | M::Cmovg => {
            Kind::ConditionalMove
        }
        M::Seto | M::Setno | M::Setb | M::Setae | M::Sete | M::Setne | M::Setbe | M::Seta => Kind::ConditionalSet,
        M::Sets | M::Setns | M::Setp | M::Setnp | M::Setl | M::Setge | M::Setle | M::Setg => Kind::ConditionalSet,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
