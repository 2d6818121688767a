// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons for a refusal, one type per request.

use core::fmt;

use units::{ByteSize, PageSize, PhysAddr, PhysRange};

use crate::range::FrameRange;

/// Memory has become too scattered to keep count of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyExtents {
    /// Greatest number of extents.
    pub most: usize,
}

impl fmt::Display for TooManyExtents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "free memory is scattered over more than {} extents: free something next to other free memory",
            self.most
        )
    }
}

/// `add_free` refused; nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// Some of the range was added before.
    Overlap(PhysRange),
    /// See [`TooManyExtents`].
    TooManyExtents(TooManyExtents),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap(range) => write!(f, "memory {range} overlaps memory added before: normalise the memory map"),
            Self::TooManyExtents(error) => error.fmt(f),
        }
    }
}

/// No extent holds what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were requested in one piece.
    pub bytes: u64,
    /// Alignment that was requested.
    pub alignment: PageSize,
    /// Below which address, if that mattered.
    pub limit: Option<PhysAddr>,
    /// Bytes that are free in all.
    pub free_bytes: u64,
    /// The largest extent, aligned or not.
    pub largest_bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} of memory in one piece aligned to {}", ByteSize(self.bytes), self.alignment)?;
        if let Some(limit) = self.limit {
            write!(f, " below {limit}")?;
        }
        write!(f, ": {} free, largest piece {}", ByteSize(self.free_bytes), ByteSize(self.largest_bytes))
    }
}

/// `claim` refused; nothing changed hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// The range is empty or not whole 4 KiB frames.
    Misaligned(PhysRange),
    /// Some of the range is not free.
    NotFree(PhysRange),
    /// See [`TooManyExtents`].
    TooManyExtents(TooManyExtents),
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misaligned(range) => write!(f, "memory {range} is not whole 4 KiB frames"),
            Self::NotFree(range) => write!(f, "memory {range} is not all free"),
            Self::TooManyExtents(error) => error.fmt(f),
        }
    }
}

/// `free` refused; the range still belongs to the owner of this value.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "it holds the memory that could not be freed"]
pub struct FreeError {
    /// The memory, still owned.
    pub range: FrameRange,
    /// The reason.
    pub reason: FreeReason,
}

/// The reason why memory could not be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeReason {
    /// This part is free already: it had two owners, or was freed twice.
    FreeAlready(PhysRange),
    /// Some of it was never added as memory.
    NeverAdded,
    /// See [`TooManyExtents`].
    TooManyExtents(TooManyExtents),
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory {} cannot be freed: ", self.range.range())?;
        match self.reason {
            FreeReason::FreeAlready(part) => write!(f, "{part} is free already"),
            FreeReason::NeverAdded => f.write_str("some of it was never added as memory"),
            FreeReason::TooManyExtents(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TooManyExtents {}
impl core::error::Error for AddError {}
impl core::error::Error for OutOfMemory {}
impl core::error::Error for ClaimError {}
impl core::error::Error for FreeError {}
