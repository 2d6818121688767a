// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bitmaps: which ports and model specific registers the guest owns (sections 25.6.4 and 25.6.9).

/// Bytes of the MSR bitmap: reads of low and high registers, writes of low and high ones, 1 KiB each.
pub const MSR_BITMAP_BYTES: usize = 4096;
/// Bytes of each of the two I/O bitmaps: A for ports below 8000H, B for those above.
pub const IO_BITMAP_BYTES: usize = 4096;
/// Bits from a register's bit for reads to that for writes.
const WRITES: usize = 0x800 * 8;

/// Returns where a register's bit for reads is in the bitmap; `None` for registers that always exit.
pub const fn msr_read_bit(msr: u32) -> Option<usize> {
    match msr {
        0..=0x1fff => Some(msr as usize),
        0xc000_0000..=0xc000_1fff => Some(0x400 * 8 + (msr - 0xc000_0000) as usize),
        _ => None,
    }
}

/// Returns where a register's bit for writes is in the bitmap; `None` for registers that always exit.
pub const fn msr_write_bit(msr: u32) -> Option<usize> {
    match msr_read_bit(msr) {
        Some(bit) => Some(bit + WRITES),
        None => None,
    }
}

/// Makes `map` intercept everything but reads and writes of `owned`. A register that has no bit stays intercepted.
pub fn fill_msr_bitmap(map: &mut [u8], owned: &[u32]) {
    map.fill(0xff);
    owned.iter().for_each(|&msr| let_through(map, msr, Pass::Both));
}

/// Accesses that pass without an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Writes. Reads still leave the guest.
    Write,
    /// Reads and writes.
    Both,
}

/// Makes accesses of one more register pass.
pub fn let_through(map: &mut [u8], msr: u32, pass: Pass) {
    let read = msr_read_bit(msr).filter(|_| pass == Pass::Both);
    for bit in [read, msr_write_bit(msr)].into_iter().flatten() {
        if let Some(byte) = map.get_mut(bit / 8) {
            *byte &= !(1 << (bit % 8));
        }
    }
}

/// Makes both I/O bitmaps intercept every port.
pub fn fill_io_bitmaps(a: &mut [u8], b: &mut [u8]) {
    a.fill(0xff);
    b.fill(0xff);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_intercepted(map: &[u8], bit: Option<usize>) -> bool {
        bit.is_none_or(|bit| map[bit / 8] >> (bit % 8) & 1 != 0)
    }

    #[test]
    fn registers_have_their_bits_where_the_manual_puts_them() {
        assert_eq!((msr_read_bit(0), msr_write_bit(0)), (Some(0), Some(2048 * 8)));
        assert_eq!(msr_read_bit(0x1fff), Some(1024 * 8 - 1));
        assert_eq!(msr_read_bit(0xc000_0000), Some(1024 * 8));
        assert_eq!(msr_write_bit(0xc000_1fff), Some(MSR_BITMAP_BYTES * 8 - 1));
        assert_eq!((msr_read_bit(0x2000), msr_write_bit(0xc001_0015)), (None, None));
    }

    #[test]
    fn a_write_can_pass_where_a_read_does_not() {
        let mut map = [0; MSR_BITMAP_BYTES];
        fill_msr_bitmap(&mut map, &[]);
        let_through(&mut map, 0x49, Pass::Write);
        let_through(&mut map, 0x48, Pass::Both);
        let_through(&mut map, 0x2000, Pass::Both);
        let bits = |msr| [msr_read_bit(msr), msr_write_bit(msr)].map(|bit| is_intercepted(&map, bit));
        assert_eq!([0x47, 0x48, 0x49, 0x2000].map(bits), [[true; 2], [false; 2], [true, false], [true; 2]]);
    }

    #[test]
    fn every_port_is_intercepted() {
        let (mut a, mut b) = ([0; IO_BITMAP_BYTES], [0; IO_BITMAP_BYTES]);
        fill_io_bitmaps(&mut a, &mut b);
        assert!(a.iter().chain(&b).all(|byte| *byte == 0xff));
    }

    proptest! {
        #[test]
        fn only_what_the_guest_owns_passes(owned in prop::collection::btree_set(any::<u32>(), 0..8), high in 0u32..0x2000) {
            let owned: std::vec::Vec<u32> = owned.into_iter().chain([0xc000_0000 + high]).collect();
            let mut map = [0; MSR_BITMAP_BYTES];
            fill_msr_bitmap(&mut map, &owned);
            let zeros: u32 = map.iter().map(|byte| byte.count_zeros()).sum();
            let with_bits = owned.iter().filter(|msr| msr_read_bit(**msr).is_some());
            prop_assert_eq!(zeros as usize, 2 * with_bits.count());
            prop_assert!(!is_intercepted(&map, msr_read_bit(0xc000_0000 + high)));
        }
    }
}
