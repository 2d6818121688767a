// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn rights_are_descriptors_bits() {
    // The descriptor of flat 64-bit code: G, L, present, code, readable, accessed.
    let descriptor = 0x00af_9b00_0000_ffff_u64;
    let bits = (descriptor >> 40) as u16 & 0xf0ff;
    assert_eq!(AccessRights::CODE_64.bits(), bits);
    assert_eq!(AccessRights::CODE_32.bits(), 0xc09b);
    assert_eq!(AccessRights::DATA_32.bits(), 0xc093);
    assert_eq!((AccessRights::BUSY_TASK.bits(), AccessRights::LOCAL_TABLE.bits()), (0x8b, 0x82));
}

#[test]
fn the_packed_form_is_the_one_of_the_hand_over() {
    let rights = [AccessRights::CODE_64, AccessRights::CODE_32, AccessRights::DATA_32, AccessRights::CODE_16];
    assert_eq!(rights.map(AccessRights::packed), [0xa9b, 0xc9b, 0xc93, 0x9b]);
    let segment = Segment { selector: 0x10, rights: AccessRights::CODE_64, limit: u32::MAX, base: 7 };
    let stored = SegmentRegister::from(segment);
    assert_eq!(stored.attributes.get(), 0xa9b);
    assert_eq!(Segment::from(stored), segment);
}

#[test]
fn packing_loses_nothing_but_the_limits_bits() {
    for packed in 0..0x1000 {
        assert_eq!(AccessRights::from_packed(packed).packed(), packed);
    }
    for bits in 0..=u16::MAX {
        let packed = AccessRights::from_bits_retain(bits).packed();
        assert_eq!(AccessRights::from_packed(packed).bits(), bits & !0xf00);
    }
}
