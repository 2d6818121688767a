// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permission maps: which ports and model specific registers the guest owns (sections 15.10.1 and 15.11).

/// Bytes of the MSR permission map.
pub const MSR_MAP_BYTES: usize = 8192;
/// Bytes of the I/O permission map: one bit a port, and room for an access that begins at the last one.
pub const IO_MAP_BYTES: usize = 12288;

/// Returns where a register's two bits (read, then write) are in the map; `None` for registers that always exit.
pub const fn msr_bit(msr: u32) -> Option<usize> {
    let (vector, base) = match msr {
        0..=0x1fff => (0, 0),
        0xc000_0000..=0xc000_1fff => (1, 0xc000_0000),
        0xc001_0000..=0xc001_1fff => (2, 0xc001_0000),
        _ => return None,
    };
    Some(vector * 0x800 * 8 + (msr - base) as usize * 2)
}

/// Makes `map` intercept everything but reads and writes of `owned`. A register that has no bit stays intercepted.
pub fn fill_msr_map(map: &mut [u8], owned: &[u32]) {
    map.fill(0xff);
    for bit in owned.iter().filter_map(|&msr| msr_bit(msr)) {
        if let Some(byte) = map.get_mut(bit / 8) {
            *byte &= !(0b11 << (bit % 8));
        }
    }
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
    let bits = match pass {
        Pass::Write => 0b10,
        Pass::Both => 0b11,
    };
    if let Some(bit) = msr_bit(msr)
        && let Some(byte) = map.get_mut(bit / 8)
    {
        *byte &= !(bits << (bit % 8));
    }
}

/// Makes `map` intercept every port.
pub fn fill_io_map(map: &mut [u8]) {
    map.fill(0xff);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_their_bits_where_the_manual_puts_them() {
        assert_eq!(msr_bit(0), Some(0));
        assert_eq!(msr_bit(0x1fff), Some(0x800 * 8 - 2));
        assert_eq!(msr_bit(0xc000_0100), Some(0x800 * 8 + 0x200));
        assert_eq!(msr_bit(0xc001_0117), Some(0x1000 * 8 + 0x22e));
        assert_eq!(msr_bit(0x4b56_4d01), None);
    }

    #[test]
    fn a_write_can_pass_where_a_read_does_not() {
        let mut map = [0; MSR_MAP_BYTES];
        fill_msr_map(&mut map, &[]);
        let_through(&mut map, 0x49, Pass::Write);
        let_through(&mut map, 0x48, Pass::Both);
        let bits = |msr| map[msr_bit(msr).unwrap() / 8] >> (msr_bit(msr).unwrap() % 8) & 3;
        assert_eq!([0x47, 0x48, 0x49, 0x4a].map(bits), [3, 0, 1, 3]);
    }

    #[test]
    fn only_what_the_guest_owns_passes() {
        let mut map = [0; MSR_MAP_BYTES];
        fill_msr_map(&mut map, &[0xc000_0101, 0x4b56_4d01]);
        let zeros: u32 = map.iter().map(|byte| byte.count_zeros()).sum();
        let bit = msr_bit(0xc000_0101).unwrap();
        assert_eq!(zeros, 2);
        assert_eq!(map[bit / 8] >> (bit % 8) & 3, 0);
    }
}
