// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics: the CPU's own, and in unit tests loom's, which try every interleaving of CPUs, each operation
//! preceded by a point at which a test may interrupt the CPU. (Unit tests may therefore touch rings only inside
//! `loom::model`; tests that run real rings are in `tests/`.)

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(test)]
pub use self::interruptible::AtomicU64;
#[cfg(test)]
pub(crate) use self::interruptible::fence;
#[cfg(test)]
pub(crate) use loom::sync::atomic::Ordering;

#[cfg(test)]
#[allow(unreachable_pub)]
pub(crate) mod interruptible {
    use std::boxed::Box;
    use std::cell::RefCell;

    use super::Ordering;

    type Handler = Box<dyn FnMut()>;

    std::thread_local! {
        /// Points left until the interrupt comes, and its handler.
        static INTERRUPT: RefCell<Option<(usize, Handler)>> = const { RefCell::new(None) };
    }

    /// The calling thread is interrupted once, when it has passed `points` more operations.
    pub(crate) fn interrupt_after(points: usize, handler: impl FnMut() + 'static) {
        INTERRUPT.set(Some((points, Box::new(handler))));
    }

    /// No interrupt comes any more; returns whether one was still to come.
    pub(crate) fn disarm() -> bool {
        INTERRUPT.take().is_some()
    }

    fn point() {
        let due = INTERRUPT.with_borrow_mut(|interrupt| match interrupt {
            Some((0, _)) => interrupt.take(),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        });
        if let Some((_, mut handler)) = due {
            handler();
        }
    }

    #[derive(Debug)]
    #[allow(missing_docs)]
    pub struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        pub(crate) fn new(value: u64) -> Self {
            Self(loom::sync::atomic::AtomicU64::new(value))
        }

        pub(crate) fn load(&self, ordering: Ordering) -> u64 {
            point();
            self.0.load(ordering)
        }

        pub(crate) fn store(&self, value: u64, ordering: Ordering) {
            point();
            self.0.store(value, ordering);
        }

        pub(crate) fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            point();
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    pub(crate) fn fence(ordering: Ordering) {
        loom::sync::atomic::fence(ordering);
    }
}
