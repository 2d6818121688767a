// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU models that a guest can have.

use serde::{Deserialize, Serialize};

/// The CPU that a guest sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuModel {
    /// The host's, as far as it is virtualized.
    #[default]
    Host,
    /// x86-64-v2: SSE4.2.
    V2,
    /// x86-64-v3: AVX2.
    V3,
    /// x86-64-v4: AVX-512.
    V4,
    /// Zen.
    Epyc,
    /// Zen 2.
    EpycRome,
    /// Zen 3.
    EpycMilan,
}

/// All but the host's, by name.
const ALL: [(CpuModel, &str); 6] = [
    (CpuModel::V2, "v2"),
    (CpuModel::V3, "v3"),
    (CpuModel::V4, "v4"),
    (CpuModel::Epyc, "epyc"),
    (CpuModel::EpycRome, "epyc-rome"),
    (CpuModel::EpycMilan, "epyc-milan"),
];

impl CpuModel {
    /// Returns the model's name; `None` for the host's CPU.
    pub fn model(self) -> Option<&'static str> {
        ALL.iter().find(|(model, _)| *model == self).map(|(_, name)| *name)
    }
}
