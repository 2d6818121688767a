// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every instruction with one operand in memory, at every width, against the model of its results and flags.
use super::model::{self, CF, Expected, OF, PF, SF, ZF};
use super::*;
use crate::vcpu::Exception;

const SIZES: [AccessSize; 4] = [AccessSize::Byte, AccessSize::Word, AccessSize::Dword, AccessSize::Qword];
const FLAGS: u64 = 0x8d5;
/// RCX: the register operand, and the count of shifts.
const OTHER: u8 = 1;

/// An instruction whose opcode's lowest bit is clear for bytes and set for other widths.
fn sized(size: AccessSize, opcode: &[u8], register: u8, immediate: &[u8]) -> Vec<u8> {
    let mut code = wide(size, opcode, register, immediate);
    let last = code.len() - immediate.len() - 2;
    code[last] |= u8::from(size != AccessSize::Byte);
    code
}

/// An instruction with `[rbx]` and a register or an extension of the opcode.
fn wide(size: AccessSize, opcode: &[u8], register: u8, immediate: &[u8]) -> Vec<u8> {
    let prefix: &[u8] = match size {
        AccessSize::Word => &[0x66],
        AccessSize::Qword => &[0x48],
        _ => &[],
    };
    // A mandatory prefix comes before REX.
    let (mandatory, opcode) = if opcode[0] == 0xf3 { opcode.split_at(1) } else { opcode.split_at(0) };
    [mandatory, prefix, opcode, &[register << 3 | 3], immediate].concat()
}

/// Numbers next to which flags change.
const EDGES: [u64; 13] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, 1 << 63, u64::MAX, u64::MAX >> 1];

#[derive(Clone, Debug)]
struct Start {
    gprs: [u64; 16],
    rflags: u64,
    loads: u64,
}

fn start() -> impl Strategy<Value = Start> {
    let number = move || prop_oneof![any::<u64>(), 0..70u64, prop::sample::select(&EDGES[..])];
    (prop::array::uniform16(number()), any::<u64>(), number()).prop_map(|(mut gprs, rflags, loads)| {
        gprs[Gpr::Rbx as usize] = DEVICE.0;
        Start { gprs, rflags: rflags & FLAGS, loads }
    })
}

/// Emulates one instruction; returns the vCPU after it, and what it stored.
fn emulate(code: &[u8], start: &Start) -> Result<(FakeVcpu, Vec<u64>), Refused> {
    let (mut vcpu, memory) = long_mode(code);
    (vcpu.gprs, vcpu.rflags) = (start.gprs, start.rflags);
    let before = vcpu.clone();
    let mut bus = Recorder { loads: start.loads, ..Recorder::default() };
    let done = access(&mut vcpu, &memory, DEVICE, &mut bus);
    if done.is_err() {
        assert_eq!((vcpu.gprs, vcpu.rip, vcpu.rflags), (before.gprs, before.rip, before.rflags), "{code:x?}");
        assert!(bus.stores.is_empty(), "{code:x?}");
    } else {
        assert_eq!(vcpu.rip, 0x100 + code.len() as u64, "{code:x?}");
    }
    done.map(|()| (vcpu, bus.stores.iter().map(|(_, _, value)| *value).collect()))
}

/// An instruction that stores its result.
fn stores(code: &[u8], start: &Start, expected: Expected) {
    let (vcpu, stores) = emulate(code, start).unwrap();
    assert_eq!(stores, [expected.result], "{code:x?} {start:x?}");
    assert_eq!(vcpu.gprs, start.gprs, "{code:x?}");
    check_flags(code, start, &vcpu, expected);
}

/// An instruction that writes its result to RCX.
fn writes(code: &[u8], start: &Start, expected: Expected, size: AccessSize) {
    let (vcpu, stores) = emulate(code, start).unwrap();
    assert!(stores.is_empty(), "{code:x?}");
    let mut gprs = start.gprs;
    gprs[1] = merged(gprs[1], expected.result, size);
    assert_eq!(vcpu.gprs, gprs, "{code:x?} {start:x?}");
    check_flags(code, start, &vcpu, expected);
}

fn check_flags(code: &[u8], start: &Start, vcpu: &FakeVcpu, expected: Expected) {
    let (found, wanted) = (vcpu.rflags & expected.defined, expected.flags & expected.defined);
    assert_eq!(found, wanted, "flags of {code:x?} {start:x?}");
    if expected.defined == 0 {
        assert_eq!(vcpu.rflags, start.rflags, "{code:x?} changes no flag");
    }
}

/// A register after a write of this width.
fn merged(old: u64, new: u64, size: AccessSize) -> u64 {
    match size {
        AccessSize::Byte => old & !0xff | new,
        AccessSize::Word => old & !0xffff | new,
        AccessSize::Dword | AccessSize::Qword => new,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arithmetic_and_logic(start in start(), immediate in any::<u8>()) {
        for (size, number) in SIZES.into_iter().flat_map(|size| (0..8).map(move |number| (size, number))) {
            let (memory, register) = (start.loads & size.mask(), start.gprs[1] & size.mask());
            let widened = immediate as i8 as u64 & size.mask();
            let carry = start.rflags & CF != 0;
            let model = |left, right| model::arithmetic(number, left, right, carry, size);
            let (into_memory, into_register) = ([8 * number], [8 * number + 2]);
            let by_immediate = [if size == AccessSize::Byte { 0x80 } else { 0x83 }];
            if number == 7 {
                for (code, expected) in [
                    (sized(size, &into_memory, OTHER, &[]), model(memory, register)),
                    (sized(size, &into_register, OTHER, &[]), model(register, memory)),
                    (wide(size, &by_immediate, number, &[immediate]), model(memory, widened)),
                ] {
                    let (vcpu, stores) = emulate(&code, &start).unwrap();
                    prop_assert!(stores.is_empty() && vcpu.gprs == start.gprs);
                    check_flags(&code, &start, &vcpu, expected);
                }
            } else {
                stores(&sized(size, &into_memory, OTHER, &[]), &start, model(memory, register));
                writes(&sized(size, &into_register, OTHER, &[]), &start, model(register, memory), size);
                stores(&wide(size, &by_immediate, number, &[immediate]), &start, model(memory, widened));
            }
        }
    }

    #[test]
    fn operations_with_one_operand(start in start()) {
        for size in SIZES {
            let memory = start.loads & size.mask();
            for (opcode, extension, name) in [(0xfe, 0, "inc"), (0xfe, 1, "dec"), (0xf6, 2, "not"), (0xf6, 3, "neg")] {
                stores(&sized(size, &[opcode], extension, &[]), &start, model::unary(name, memory, size));
            }
        }
    }

    #[test]
    fn shifts_and_rotates(start in start(), immediate in any::<u8>()) {
        for (size, number) in SIZES.into_iter().flat_map(|size| [0, 1, 2, 3, 4, 5, 7].map(|number| (size, number))) {
            let (memory, carry) = (start.loads & size.mask(), start.rflags & CF != 0);
            let mask = if size == AccessSize::Qword { 63 } else { 31 };
            let model = |count: u64| model::shift(number, memory, (count & mask) as u32, carry, size);
            stores(&sized(size, &[0xc0], number, &[immediate]), &start, model(immediate.into()));
            stores(&sized(size, &[0xd0], number, &[]), &start, model(1));
            stores(&sized(size, &[0xd2], number, &[]), &start, model(start.gprs[1]));
        }
    }

    #[test]
    fn double_shifts(start in start(), immediate in any::<u8>()) {
        const RDX: u8 = 2;
        for size in [AccessSize::Word, AccessSize::Dword, AccessSize::Qword] {
            let mask = if size == AccessSize::Qword { 63 } else { 31 };
            for (is_left, opcode) in [(true, 0xa4), (false, 0xac)] {
                for (opcode, immediate, count) in
                    [(opcode, &[immediate][..], immediate.into()), (opcode + 1, &[][..], start.gprs[1])] {
                    let count = (count & mask) as u32;
                    let code = wide(size, &[0x0f, opcode], RDX, immediate);
                    if count >= model::bits(size) {
                        emulate(&code, &start).unwrap();
                        continue;
                    }
                    let (memory, other) = (start.loads & size.mask(), start.gprs[2] & size.mask());
                    stores(&code, &start, model::double_shift(is_left, memory, other, count, size));
                }
            }
        }
    }

    #[test]
    fn single_bits(start in start(), immediate in any::<u8>()) {
        for (size, number) in [AccessSize::Word, AccessSize::Dword, AccessSize::Qword].into_iter()
            .flat_map(|size| (4..8).map(move |number| (size, number))) {
            let memory = start.loads & size.mask();
            let bits = u64::from(model::bits(size));
            let forms = [
                (wide(size, &[0x0f, 0xba], number, &[immediate]), u64::from(immediate)),
                (wide(size, &[0x0f, 0x83 + 8 * number], OTHER, &[]), start.gprs[1]),
            ];
            for (code, offset) in forms {
                let weight = 1 << (offset % bits);
                let was_set = memory / weight % 2 == 1;
                let result = match number {
                    5 if !was_set => memory + weight,
                    6 if was_set => memory - weight,
                    7 if was_set => memory - weight,
                    7 => memory + weight,
                    _ => memory,
                };
                let expected = Expected { result, defined: CF, flags: u64::from(was_set) };
                if number == 4 {
                    let (vcpu, stores) = emulate(&code, &start).unwrap();
                    prop_assert!(stores.is_empty());
                    check_flags(&code, &start, &vcpu, expected);
                } else {
                    stores(&code, &start, expected);
                }
            }
        }
    }

    #[test]
    fn searching_and_counting_bits(start in start()) {
        for size in [AccessSize::Word, AccessSize::Dword, AccessSize::Qword] {
            let memory = start.loads & size.mask();
            let bits = model::bits(size);
            let set: Vec<u32> = (0..bits).filter(|bit| memory >> bit & 1 == 1).collect();
            let zero = if memory == 0 { ZF } else { 0 };
            for (opcode, found) in [(0xbc, set.first()), (0xbd, set.last())] {
                let result = found.map_or(start.gprs[1] & size.mask(), |bit| u64::from(*bit));
                let expected = Expected { result, defined: ZF, flags: zero };
                // Of zero: the register stays, its upper half too.
                let size = if memory == 0 { AccessSize::Word } else { size };
                let code = wide(AccessSize::from_bytes(bits as usize / 8).unwrap(), &[0x0f, opcode], OTHER, &[]);
                writes(&code, &start, Expected { result: expected.result & size.mask(), ..expected }, size);
            }
            let trailing = set.first().copied().unwrap_or(bits);
            let leading = set.last().map_or(bits, |last| bits - 1 - last);
            for (opcode, count) in [(0xbc, trailing), (0xbd, leading)] {
                let flags = if memory == 0 { CF } else { 0 } | if count == 0 { ZF } else { 0 };
                let expected = Expected { result: count.into(), defined: CF | ZF, flags };
                writes(&wide(size, &[0xf3, 0x0f, opcode], OTHER, &[]), &start, expected, size);
            }
            let expected = Expected { result: set.len() as u64, defined: FLAGS, flags: zero };
            writes(&wide(size, &[0xf3, 0x0f, 0xb8], OTHER, &[]), &start, expected, size);
        }
    }

    #[test]
    fn products(start in start(), immediate in any::<i8>()) {
        for size in SIZES {
            let memory = start.loads & size.mask();
            for (extension, is_signed) in [(4, false), (5, true)] {
                let (expected, high) = model::multiply(is_signed, start.gprs[0] & size.mask(), memory, size);
                let code = sized(size, &[0xf6], extension, &[]);
                let (vcpu, stores) = emulate(&code, &start).unwrap();
                prop_assert!(stores.is_empty());
                let mut gprs = start.gprs;
                if size == AccessSize::Byte {
                    gprs[0] = merged(gprs[0], high << 8 | expected.result, AccessSize::Word);
                } else {
                    (gprs[0], gprs[2]) = (merged(gprs[0], expected.result, size), merged(gprs[2], high, size));
                }
                prop_assert_eq!(vcpu.gprs, gprs);
                check_flags(&code, &start, &vcpu, expected);
            }
            if size != AccessSize::Byte {
                let (expected, _) = model::multiply(true, start.gprs[1] & size.mask(), memory, size);
                writes(&wide(size, &[0x0f, 0xaf], OTHER, &[]), &start, expected, size);
                let (expected, _) = model::multiply(true, immediate as u64 & size.mask(), memory, size);
                writes(&wide(size, &[0x6b], OTHER, &[immediate as u8]), &start, expected, size);
            }
        }
    }

    #[test]
    fn quotients(start in start(), small in 0..300u64) {
        // A dividend with a small upper half, too: quotients of others rarely fit.
        let mut narrow = start.clone();
        narrow.gprs[2] = small % 3;
        for (start, size) in [&start, &narrow].into_iter().flat_map(|start| SIZES.map(|size| (start, size))) {
            for (extension, is_signed) in [(6, false), (7, true)] {
                let (high, low) = match size {
                    AccessSize::Byte => (start.gprs[0] >> 8 & 0xff, start.gprs[0] & 0xff),
                    _ => (start.gprs[2] & size.mask(), start.gprs[0] & size.mask()),
                };
                let emulated = emulate(&sized(size, &[0xf6], extension, &[]), start);
                let Some((quotient, remainder)) = model::divide(is_signed, high, low, start.loads & size.mask(), size) else {
                    prop_assert_eq!(emulated.err(), Some(Refused::Exception(Exception::DivideError)));
                    continue;
                };
                let mut gprs = start.gprs;
                if size == AccessSize::Byte {
                    gprs[0] = merged(gprs[0], remainder << 8 | quotient, AccessSize::Word);
                } else {
                    (gprs[0], gprs[2]) = (merged(gprs[0], quotient, size), merged(gprs[2], remainder, size));
                }
                prop_assert_eq!(emulated.unwrap().0.gprs, gprs);
            }
        }
    }

    #[test]
    fn exchanges(start in start(), is_equal in any::<bool>()) {
        for size in SIZES {
            let mut start = start.clone();
            start.gprs[0] = if is_equal { start.loads } else { start.gprs[0] };
            let [accumulator, other] = [0, 1].map(|gpr| start.gprs[gpr] & size.mask());
            let memory = start.loads & size.mask();
            let (vcpu, stored) = emulate(&sized(size, &[0x86], OTHER, &[]), &start).unwrap();
            prop_assert_eq!((stored, vcpu.gprs[1]), (std::vec![other], merged(start.gprs[1], memory, size)));
            prop_assert_eq!(vcpu.rflags, start.rflags);

            let expected = model::arithmetic(0, memory, other, false, size);
            let code = [&[0xf0], &sized(size, &[0x0f, 0xc0], OTHER, &[])[..]].concat(); // lock xadd
            let (vcpu, stored) = emulate(&code, &start).unwrap();
            prop_assert_eq!((stored, vcpu.gprs[1]), (std::vec![expected.result], merged(start.gprs[1], memory, size)));
            check_flags(&code, &start, &vcpu, expected);

            let expected = model::arithmetic(7, accumulator, memory, false, size);
            let code = [&[0xf0], &sized(size, &[0x0f, 0xb0], OTHER, &[])[..]].concat(); // lock cmpxchg
            let (vcpu, stored) = emulate(&code, &start).unwrap();
            let is_equal = accumulator == memory;
            let kept = if is_equal { start.gprs[0] } else { merged(start.gprs[0], memory, size) };
            prop_assert_eq!((stored, vcpu.gprs[0]), (std::vec![if is_equal { other } else { memory }], kept));
            check_flags(&code, &start, &vcpu, expected);
        }
    }

    #[test]
    fn conditions(start in start()) {
        let has = |flag| start.rflags & flag != 0;
        let less = has(SF) != has(OF);
        let met = [has(OF), has(CF), has(ZF), has(CF) || has(ZF), has(SF), has(PF), less, less || has(ZF)];
        for (condition, is_met) in met.into_iter().flat_map(|is_met| [is_met, !is_met]).enumerate() {
            let nothing = Expected { result: is_met.into(), ..Expected::default() };
            stores(&[0x0f, 0x90 + condition as u8, 0x03], &start, nothing);
            for size in [AccessSize::Word, AccessSize::Dword, AccessSize::Qword] {
                let result = if is_met { start.loads } else { start.gprs[1] } & size.mask();
                let code = wide(size, &[0x0f, 0x40 + condition as u8], OTHER, &[]);
                writes(&code, &start, Expected { result, ..Expected::default() }, size);
            }
        }
    }

    #[test]
    fn swapped_and_non_temporal_moves(start in start()) {
        for size in [AccessSize::Word, AccessSize::Dword, AccessSize::Qword] {
            let swapped = |value: u64| {
                let bytes = &value.to_le_bytes()[..size.bytes()];
                bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
            };
            let nothing = |result| Expected { result, ..Expected::default() };
            writes(&wide(size, &[0x0f, 0x38, 0xf0], OTHER, &[]), &start, nothing(swapped(start.loads)), size);
            stores(&wide(size, &[0x0f, 0x38, 0xf1], OTHER, &[]), &start, nothing(swapped(start.gprs[1])));
            if size != AccessSize::Word {
                stores(&wide(size, &[0x0f, 0xc3], OTHER, &[]), &start, nothing(start.gprs[1] & size.mask()));
            }
        }
    }
}

#[test]
fn an_exchange_of_eight_bytes_compares_all_of_them() {
    for (code, bytes) in [(&[0xf0, 0x0f, 0xc7, 0x0b][..], 8), (&[0xf0, 0x48, 0x0f, 0xc7, 0x0b], 16)] {
        for is_equal in [true, false] {
            let mut gprs = [0xaaaa_aaaa_0000_0000; 16];
            (gprs[0], gprs[2], gprs[1], gprs[3]) = (7, if is_equal { 7 } else { 8 }, 0x11, DEVICE.0);
            let start = Start { gprs, rflags: FLAGS & !ZF, loads: 7 };
            let (vcpu, stored) = emulate(code, &start).unwrap();
            let low = if bytes == 8 { DEVICE.0 & 0xffff_ffff } else { DEVICE.0 };
            assert_eq!(stored, if is_equal { [low, 0x11] } else { [7, 7] });
            assert_eq!((vcpu.gprs[0], vcpu.gprs[2]), (7, 7));
            assert_eq!(vcpu.rflags, FLAGS & !ZF | if is_equal { ZF } else { 0 }, "no flag but one changes");
        }
    }
    let (mut vcpu, memory) = long_mode(&[0x48, 0x0f, 0xc7, 0x0b]); // cmpxchg16b
    vcpu.gprs[Gpr::Rbx as usize] = DEVICE.0 + 8;
    let refused = access(&mut vcpu, &memory, Gpa(DEVICE.0 + 8), &mut Recorder::default());
    assert_eq!(refused, Err(Refused::Exception(Exception::GeneralProtection(0))), "it must be aligned");
}
