// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the key `cpu`.

use bundle::CpuModel;

use super::*;

#[test]
fn a_cpu_model_is_one_of_those_that_there_are() {
    let guest = |line: &str| {
        let text = format!("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{line}\n");
        load(&text).map(|config| config.guests[0].cpu)
    };
    assert_eq!(guest(""), Ok(CpuModel::Host));
    assert_eq!(guest("cpu = \"host\""), Ok(CpuModel::Host));
    assert_eq!(guest("cpu = \"v3\""), Ok(CpuModel::V3));
    assert_eq!(guest("cpu = \"epyc-rome\""), Ok(CpuModel::EpycRome));
    let expected = "host.toml:5:7: guest \"a\": cpu = \"epyc-milano\" is unknown; did you mean \"epyc-milan\"? (possible \
                    are host, v2, v3, v4, epyc, epyc-rome, epyc-milan)";
    assert_eq!(guest("cpu = \"epyc-milano\""), Err(expected.to_owned()));
}
