// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host that a command is for.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use seal::SecretKey;

use crate::connection::{Address, Identity};
use crate::keys;
use crate::running::DEFAULT_NAME;

/// The variable with the address of the host, for commands that state none.
const VARIABLE: &str = "BATON_CONNECT";
/// The variable with the file of the key, for commands that state none.
const KEY_VARIABLE: &str = "BATON_KEY";

/// The host.
#[derive(Clone, Debug, Default, Args)]
pub struct Target {
    /// Reach the host at lab:NAME, unix:PATH, tty:DEVICE[,BAUD], tcp:HOST:PORT, serve:PATH[,NAME],
    /// https://SERVICE:PORT[/NAME], vsock:CID[:PORT] or ssh:[USER@]HOST[:PORT][/ADDRESS] [default: $BATON_CONNECT,
    /// lab:default]
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub connect: Option<Address>,
    /// The host's name, as given to `baton up`: NAME is --connect lab:NAME
    #[arg(long, global = true, conflicts_with = "connect")]
    pub name: Option<String>,
    /// The secret key that requests to the host are signed with, one of its [[trust.control]] [default: $BATON_KEY,
    /// none]
    #[arg(long, value_name = "FILE", global = true)]
    pub key: Option<PathBuf>,
    /// For https: the client's certificate, in PEM [default: $BATON_CERT, ~/.config/baton/cert.pem]
    #[arg(long, value_name = "FILE", global = true)]
    pub cert: Option<PathBuf>,
    /// For https: the key of that certificate [default: $BATON_CERT_KEY, ~/.config/baton/cert.key, the certificate's
    /// file]
    #[arg(long, value_name = "FILE", global = true)]
    pub cert_key: Option<PathBuf>,
    /// For https: the authority of the service's certificate [default: $BATON_CA, ~/.config/baton/ca.pem]
    #[arg(long, value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,
}

impl Target {
    /// Returns where the host is: as the command line states, else as the environment does.
    ///
    /// # Errors
    /// The environment states no address.
    pub fn address(&self) -> Result<Address> {
        let mut address = self.address_or(env::var_os(VARIABLE).filter(|text| !text.is_empty()).as_deref())?;
        if let Address::Https { identity, .. } = &mut address {
            let (certificate, key, authority) = (self.cert.clone(), self.cert_key.clone(), self.ca.clone());
            *identity = Identity { certificate, key, authority };
        }
        Ok(address)
    }

    /// Returns the key that requests are signed with: as the command line states, else as the environment does.
    ///
    /// # Errors
    /// The file cannot be read, others can read it as well, or it holds no secret key.
    pub fn secret(&self) -> Result<Option<SecretKey>> {
        let from_environment = env::var_os(KEY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.key.clone().or(from_environment).map(|path| keys::secret(&path)).transpose()
    }

    fn address_or(&self, from_environment: Option<&std::ffi::OsStr>) -> Result<Address> {
        match (&self.connect, &self.name, from_environment) {
            (Some(address), ..) => Ok(address.clone()),
            (None, Some(name), _) => Ok(Address::Lab(name.clone())),
            (None, None, Some(text)) => {
                let text = text.to_str().ok_or_else(|| anyhow!("{VARIABLE} is no text; write an address"))?;
                text.parse().context(VARIABLE)
            }
            (None, None, None) => Ok(Address::Lab(DEFAULT_NAME.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(name: &str) -> Address {
        Address::Lab(name.to_owned())
    }

    #[test]
    fn the_command_line_counts_before_the_environment() {
        let environment = Some("unix:/run/com2".as_ref());
        let named = Target { name: Some("a".to_owned()), ..Target::default() };
        assert_eq!(named.address_or(environment).expect("an address"), lab("a"));
        let connected = Target { connect: Some(lab("b")), ..Target::default() };
        assert_eq!(connected.address_or(environment).expect("an address"), lab("b"));
        assert_eq!(Target::default().address_or(environment).expect("an address").to_string(), "unix:/run/com2");
        assert_eq!(Target::default().address_or(None).expect("an address"), lab("default"));
    }

    #[test]
    fn a_bad_address_in_the_environment_is_named() {
        let error = Target::default().address_or(Some("default".as_ref())).expect_err("no scheme");
        assert!(format!("{error:#}").starts_with("BATON_CONNECT: \"default\" is no address"), "{error:#}");
    }
}
