// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fault points: places in the code at which the test image fails, waits, or goes on with another value, if the
//! operator asks for that (`selftest=`, [`boot::self_tests`]).
//!
//! The image that operators run is built without the feature `faults`. There a fault point is nothing, or the plain
//! value behind its `else`; neither the injected code nor the option is in that image. The test image is built from
//! the same sources beside it (`scripts/build.sh`).

/// A fault point. In the test image it evaluates the first expression, by convention a call of a function in a module
/// `faults`. In the other image it is the value behind `else`, or nothing.
///
/// Both images parse both expressions, but each resolves the names of one only. So the first expression names what it
/// calls by a whole path, which an import outside would leave unused in the other image.
macro_rules! point {
    ($injected:expr) => {{
        #[cfg(feature = "faults")]
        {
            $injected
        }
    }};
    ($injected:expr,else $plain:expr) => {{
        #[cfg(feature = "faults")]
        {
            $injected
        }
        #[cfg(not(feature = "faults"))]
        {
            $plain
        }
    }};
}

pub(crate) use point;
