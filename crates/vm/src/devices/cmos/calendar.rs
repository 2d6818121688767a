// SPDX-License-Identifier: MIT OR Apache-2.0
//! Between seconds since 1970 and the clock's registers.
//!
//! Dates are the proleptic Gregorian calendar's, years 0 to 9999. Days are counted from 1 March of year 0, so that the
//! leap day is a year's last day and the months before it have lengths with a period of five: (153 m + 2) / 5 days.

/// Number of registers that hold the time.
pub const TIME_REGISTERS: usize = 8;

/// Seconds, minutes, hours, weekday, day, month, year, century.
pub type TimeRegisters = [u8; TIME_REGISTERS];

/// 0000-01-01 00:00:00, in seconds since 1970.
pub const EARLIEST: i64 = -62_167_219_200;
/// 9999-12-31 23:59:59, in seconds since 1970.
pub const LATEST: i64 = 253_402_300_799;

const DAY_SECONDS: i64 = 86_400;
/// Days of four hundred years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Format of the registers, by register B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterFormat {
    /// Binary rather than BCD.
    pub is_binary: bool,
    /// Hours 0–23 rather than 1–12 and bit 7.
    pub is_24_hours: bool,
}

/// Returns where in [`TimeRegisters`] the register with this index is, if it is one of the time.
pub const fn time_register(index: u8) -> Option<usize> {
    match index {
        0x00 => Some(0),
        0x02 => Some(1),
        0x04 => Some(2),
        0x06..=0x09 => Some(index as usize - 3),
        0x32 => Some(7),
        _ => None,
    }
}

/// The registers for a time, which is clamped to its range.
pub fn encode(unix_seconds: i64, format: RegisterFormat) -> TimeRegisters {
    let unix_seconds = unix_seconds.clamp(EARLIEST, LATEST);
    let days = unix_seconds.div_euclid(DAY_SECONDS);
    let second = unix_seconds.rem_euclid(DAY_SECONDS);
    let (year, month, day) = date_of(days);
    // 1970-01-01 was a Thursday, the fifth day of a week that begins on Sunday with 1.
    let weekday = (days + 4).rem_euclid(7) + 1;
    let number = |value: i64| format.encode(value as u8);
    let hour = format.encode_hour((second / 3600) as u8);
    [
        number(second % 60),
        number(second / 60 % 60),
        hour,
        number(weekday),
        number(day),
        number(month),
        number(year % 100),
        number(year / 100),
    ]
}

/// The time for registers; fields out of range are clamped, and the weekday is not checked.
pub fn decode(registers: &TimeRegisters, format: RegisterFormat) -> i64 {
    let [second, minute, hour, _, day, month, year, century] = *registers;
    let number = |register, low, high| i64::from(format.decode(register)).clamp(low, high);
    let year = number(century, 0, 99) * 100 + number(year, 0, 99);
    let month = number(month, 1, 12);
    let days = days_of(year, month, number(day, 1, month_days(year, month)));
    let hour = i64::from(format.decode_hour(hour));
    days * DAY_SECONDS + hour * 3600 + number(minute, 0, 59) * 60 + number(second, 0, 59)
}

impl RegisterFormat {
    fn encode(self, value: u8) -> u8 {
        if self.is_binary { value } else { ((value / 10) << 4) | (value % 10) }
    }

    fn decode(self, register: u8) -> u8 {
        if self.is_binary { register } else { (register >> 4) * 10 + (register & 0xf) }
    }

    fn encode_hour(self, hour: u8) -> u8 {
        if self.is_24_hours {
            return self.encode(hour);
        }
        let afternoon = if hour >= 12 { 0x80 } else { 0 };
        afternoon | self.encode((hour + 11) % 12 + 1)
    }

    fn decode_hour(self, register: u8) -> u8 {
        if self.is_24_hours {
            return self.decode(register).min(23);
        }
        let afternoon = if register & 0x80 != 0 { 12 } else { 0 };
        self.decode(register & 0x7f) % 12 + afternoon
    }
}

/// Year, month and day of a day counted from 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    // Take out the leap days; what is left are years of 365 days.
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Days from 1970-01-01 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year_from_march = year - i64::from(month <= 2);
    let era = year_from_march.div_euclid(400);
    let year_of_era = year_from_march.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - EPOCH_DAYS
}

/// Returns how many days a month has.
fn month_days(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
