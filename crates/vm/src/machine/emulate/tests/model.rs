// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results and flags as the manual defines them (AMD APM vol. 3, chapter 3), by arithmetic on numbers without a width:
//! written without a sample of the emulator, which works with masks and single bits.
use crate::addr::AccessSize;

pub const CF: u64 = 1;
pub const PF: u64 = 1 << 2;
pub const AF: u64 = 1 << 4;
pub const ZF: u64 = 1 << 6;
pub const SF: u64 = 1 << 7;
pub const OF: u64 = 1 << 11;

/// A result, and the flags that are defined after it with their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    pub result: u64,
    pub defined: u64,
    pub flags: u64,
}

pub fn bits(size: AccessSize) -> u32 {
    8 * size.bytes() as u32
}

/// Two to the power of the width.
fn modulus(size: AccessSize) -> i128 {
    1 << bits(size)
}

fn signed(value: u64, size: AccessSize) -> i128 {
    let value = i128::from(value);
    if value >= modulus(size) / 2 { value - modulus(size) } else { value }
}

fn cut(value: i128, size: AccessSize) -> u64 {
    value.rem_euclid(modulus(size)) as u64
}

fn fits_signed(value: i128, size: AccessSize) -> bool {
    (-modulus(size) / 2..modulus(size) / 2).contains(&value)
}

fn flags(values: &[(u64, bool)]) -> u64 {
    values.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).sum()
}

fn of_result(result: u64, size: AccessSize) -> u64 {
    let ones = (0..8).filter(|bit| result >> bit & 1 == 1).count();
    flags(&[(ZF, result == 0), (SF, signed(result, size) < 0), (PF, ones % 2 == 0)])
}

/// The eight operations of the opcodes 00 to 3F, by their number.
pub fn arithmetic(number: u8, left: u64, right: u64, carry: bool, size: AccessSize) -> Expected {
    let (l, r, c) = (i128::from(left), i128::from(right), i128::from(carry && matches!(number, 2 | 3)));
    let (sl, sr) = (signed(left, size), signed(right, size));
    let all = CF | PF | AF | ZF | SF | OF;
    let (result, defined, carries) = match number {
        0 | 2 => {
            let carries = [
                (CF, l + r + c >= modulus(size)),
                (OF, !fits_signed(sl + sr + c, size)),
                (AF, l % 16 + r % 16 + c > 15),
            ];
            (cut(l + r + c, size), all, flags(&carries))
        }
        3 | 5 | 7 => {
            let carries = [(CF, l < r + c), (OF, !fits_signed(sl - sr - c, size)), (AF, l % 16 < r % 16 + c)];
            (cut(l - r - c, size), all, flags(&carries))
        }
        1 => (left | right, all & !AF, 0),
        4 => (left & right, all & !AF, 0),
        _ => (left ^ right, all & !AF, 0),
    };
    Expected { result, defined, flags: carries | of_result(result, size) }
}

/// NOT, NEG, INC and DEC.
pub fn unary(name: &str, value: u64, size: AccessSize) -> Expected {
    match name {
        "not" => Expected { result: cut(-1 - i128::from(value), size), ..Expected::default() },
        "neg" => arithmetic(5, 0, value, false, size),
        name => {
            let number = if name == "inc" { 0 } else { 5 };
            let expected = arithmetic(number, value, 1, false, size);
            Expected { defined: expected.defined & !CF, ..expected }
        }
    }
}

fn bit(value: i128, bit: u32) -> bool {
    value >> bit & 1 == 1
}

/// The shifts and rotates of the opcodes C0 to D3, by their number. `count` has been masked.
pub fn shift(number: u8, value: u64, count: u32, carry: bool, size: AccessSize) -> Expected {
    let (width, wide) = (bits(size), i128::from(value));
    let rotated = |wide: u128, width: u32, left: u32| {
        let left = left % width;
        let all = if left == 0 { wide } else { wide << left | wide >> (width - left) };
        all & ((1 << width) - 1)
    };
    let with_carry = u128::from(value) | u128::from(carry) << width;
    let top = |value: u64| signed(value, size) < 0;
    let (result, carry_out) = match number {
        0 => {
            let result = rotated(value.into(), width, count) as u64;
            (result, result & 1 == 1)
        }
        1 => {
            let result = rotated(value.into(), width, width - count % width) as u64;
            (result, top(result))
        }
        2 | 3 => {
            let left = if number == 2 { count % (width + 1) } else { width + 1 - count % (width + 1) };
            let all = rotated(with_carry, width + 1, left);
            (cut((all & !(1 << width)) as i128, size), all >> width & 1 == 1)
        }
        4 => {
            let all = (wide as u128) << count;
            ((all % (1 << width)) as u64, all >> width & 1 == 1)
        }
        5 => (((wide as u128) >> count) as u64, count > 0 && bit(wide, count - 1)),
        _ => (cut(signed(value, size) >> count, size), count > 0 && bit(signed(value, size), count - 1)),
    };
    if count == 0 {
        return Expected { result: value, ..Expected::default() };
    }
    let overflow = match number {
        1 => top(result) != bit(i128::from(result), width - 2),
        3 => top(value) != carry,
        5 => top(value),
        7 => false,
        _ => top(result) != carry_out,
    };
    let is_rotate = number < 4;
    // The carry of a shift by more than the width is undefined.
    let carry_defined = if is_rotate || count <= width { CF } else { 0 };
    let defined = carry_defined | if count == 1 { OF } else { 0 } | if is_rotate { 0 } else { ZF | SF | PF };
    let flags = flags(&[(CF, carry_out), (OF, overflow)]) | if is_rotate { 0 } else { of_result(result, size) };
    Expected { result, defined, flags }
}

/// SHLD and SHRD, by a count that is less than the width.
pub fn double_shift(is_left: bool, value: u64, other: u64, count: u32, size: AccessSize) -> Expected {
    if count == 0 {
        return Expected { result: value, ..Expected::default() };
    }
    let width = bits(size);
    let (result, carry) = if is_left {
        let all = (u128::from(value) << width | u128::from(other)) >> (width - count);
        (cut((all % (1 << width)) as i128, size), bit(value.into(), width - count))
    } else {
        let all = (u128::from(other) << width | u128::from(value)) >> count;
        (cut((all % (1 << width)) as i128, size), bit(value.into(), count - 1))
    };
    let overflow = (signed(result, size) < 0) != (signed(value, size) < 0);
    let defined = CF | ZF | SF | PF | if count == 1 { OF } else { 0 };
    Expected { result, defined, flags: flags(&[(CF, carry), (OF, overflow)]) | of_result(result, size) }
}

/// The low and the high half of a product.
pub fn multiply(is_signed: bool, left: u64, right: u64, size: AccessSize) -> (Expected, u64) {
    let (low, high, is_large) = if is_signed {
        let product = signed(left, size) * signed(right, size);
        let high = product.div_euclid(modulus(size));
        (cut(product, size), cut(high, size), !fits_signed(product, size))
    } else {
        let product = u128::from(left) * u128::from(right);
        let modulus = modulus(size) as u128;
        ((product % modulus) as u64, (product / modulus) as u64, product / modulus != 0)
    };
    (Expected { result: low, defined: CF | OF, flags: flags(&[(CF, is_large), (OF, is_large)]) }, high)
}

/// Quotient and remainder, if there are any.
pub fn divide(is_signed: bool, high: u64, low: u64, divisor: u64, size: AccessSize) -> Option<(u64, u64)> {
    if divisor == 0 {
        return None;
    }
    if !is_signed {
        let dividend = u128::from(high) * modulus(size) as u128 + u128::from(low);
        let divisor = u128::from(divisor);
        let quotient =
            u64::try_from(dividend / divisor).ok().filter(|quotient| i128::from(*quotient) < modulus(size))?;
        return Some((quotient, (dividend % divisor) as u64));
    }
    let dividend = signed(high, size) * modulus(size) + i128::from(low);
    let quotient = dividend.checked_div(signed(divisor, size)).filter(|quotient| fits_signed(*quotient, size))?;
    Some((cut(quotient, size), cut(dividend - quotient * signed(divisor, size), size)))
}
