// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a CPU of an image on trial back to the old image for good, with the reason.

use core::fmt::{self, Write as _};
use core::panic::PanicInfo;

use ::update::trial::{REASON_BYTES, word};
use arrayvec::ArrayString;

use crate::arch::switch_pages::trial;
use crate::kernel::trial_pages::page;

/// The calling CPU goes back to the old image, for good.
pub fn go_back() -> ! {
    loop {
        trial::speak(word::GOES_BACK, 0);
    }
}

/// The calling CPU reports why it cannot go on, and goes back for good.
pub fn give_up(reason: fmt::Arguments<'_>) -> ! {
    if let Some(page) = page() {
        let mut text = ArrayString::<REASON_BYTES>::new();
        // Text that does not fit is cut.
        let _ = write!(text, "{reason}");
        page.set_reason(text.as_bytes());
    }
    loop {
        trial::speak(word::GIVES_UP, 0);
    }
}

/// Reports a panic of an image on trial to the old one, which takes the CPU back for good.
pub fn give_up_if_on_trial(info: &PanicInfo<'_>) {
    if page().is_some() {
        give_up(format_args!("{}", info.message()));
    }
}
