// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wall-clock time, for operators and for the service's clients and audit log. A host has no such clock: its times are
//! since its boot, and this machine's clock states when that was.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of a host's boot, in milliseconds since 1970: it has been up for so long now.
pub fn booted_ms(uptime_ns: u64) -> u64 {
    now_ms().saturating_sub(uptime_ns / 1_000_000)
}

/// Formats the time of a host's boot, or a time since then.
pub fn since_boot(booted_ms: u64, time_ns: u64) -> String {
    text(booted_ms.saturating_add(time_ns / 1_000_000))
}

/// Formats milliseconds since 1970 as `2026-01-31T23:59:59.000Z` (RFC 3339).
pub fn text(unix_ms: u64) -> String {
    let (seconds, milliseconds) = (unix_ms / 1000, unix_ms % 1000);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Returns the date of a day since 1970 in the Gregorian calendar, in which 400 years have 146,097 days. Years begin in
/// March, so that the leap day is the last one.
fn date(days: u64) -> (u64, u64, u64) {
    // Days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_a_host_is_that_of_its_boot_and_what_has_passed_since() {
        assert_eq!(since_boot(951_782_399_000, 1_999_999_999), "2000-02-29T00:00:00.999Z");
        let before = now_ms();
        assert!((before..before + 10_000).contains(&(booted_ms(5_000_000_000) + 5_000)));
        assert_eq!(booted_ms(u64::MAX) / 1000, (now_ms().saturating_sub(u64::MAX / 1_000_000)) / 1000);
    }

    #[test]
    fn a_time_is_written_as_rfc_3339_has_it() {
        // From `date -u -d`.
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_772_323_200_001, "2026-03-01T00:00:00.001Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (unix_ms, expected) in cases {
            assert_eq!(text(unix_ms), expected);
        }
    }
}
