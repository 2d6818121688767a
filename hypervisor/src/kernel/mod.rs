// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services for every layer above: memory, the log and its console, the timeline, and what firmware, operator and the
//! image before have stated.
//!
//! | module | content |
//! |---|---|
//! | [`address_space`] | the host's memory at boot and after an update |
//! | [`clock`] | the clock, and how the machine is powered off |
//! | [`console`] | the log, its rings, and printing it |
//! | `faults` | self-tests that are asked for, and faults of these services, in the test image |
//! | [`hooks`] | the calls to the code above |
//! | [`inherited`] | the state that the image before this one has handed over |
//! | [`iommu`] | the IOMMUs: taken over, resumed, their reports |
//! | [`interrupts`] | interrupts of devices, and the watchdog's |
//! | [`ledger`] | the owner of each part of memory; memory for guests |
//! | [`outcome`] | how long the restart that led to this image took |
//! | [`places`] | how many vCPUs each CPU takes, and those on the way to it |
//! | [`platform`] | data of loader, operator and firmware |
//! | [`cpus`] | bringing CPUs up, and which are online |
//! | [`storm`] | a load of log records, for a measurement |
//! | [`timeline`] | spans and instants of each CPU |
//! | [`trial_pages`] | each CPU's page between two images, while this image is on trial |

pub mod address_space;
pub mod clock;
pub mod console;
pub mod cpus;
#[cfg(feature = "faults")]
pub mod faults;
pub mod hooks;
pub mod inherited;
pub mod interrupts;
pub mod iommu;
pub mod ledger;
pub mod outcome;
pub mod places;
pub mod platform;
pub mod storm;
pub mod timeline;
pub mod trial_pages;
