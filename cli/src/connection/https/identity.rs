// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that prove to a service who its client is, and to the client which service it has reached.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, ensure};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::keys;

/// The variables with the files, for commands that state none.
const VARIABLES: [&str; 3] = ["BATON_CERT", "BATON_CERT_KEY", "BATON_CA"];
/// Their names in the folder `baton` of the user's configuration, where neither states one.
const DEFAULTS: [&str; 3] = ["cert.pem", "cert.key", "ca.pem"];

/// The files that the command line states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The client's certificate.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The authority of the service's certificate.
    pub authority: Option<PathBuf>,
}

/// The files that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// The client's certificate.
    pub certificate: Option<PathBuf>,
    /// Its key; without one it is in the certificate's file.
    pub key: Option<PathBuf>,
    /// The authority of the service's certificate.
    pub authority: PathBuf,
}

impl Identity {
    /// Returns the files: of the command line, else of the environment, else of the user's configuration.
    pub(super) fn files(&self) -> Result<Files> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = || Some(PathBuf::from(variable("HOME")?).join(".config"));
        let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home).map(|path| path.join("baton"));
        self.files_from(variable, folder.as_deref())
    }

    pub(super) fn files_from(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
        folder: Option<&Path>,
    ) -> Result<Files> {
        let stated = [&self.certificate, &self.key, &self.authority];
        let found = |at: usize| {
            let default = || folder.map(|folder| folder.join(DEFAULTS[at])).filter(|path| path.is_file());
            stated[at].clone().or_else(|| variable(VARIABLES[at]).map(PathBuf::from)).or_else(default)
        };
        let authority = found(2).ok_or_else(|| {
            anyhow!(
                "no authority of the service's certificate is known; name its file with --ca or BATON_CA, or put it at \
                 ~/.config/baton/ca.pem"
            )
        })?;
        Ok(Files { certificate: found(0), key: found(1), authority })
    }
}

impl Files {
    /// Returns the client's certificates and its key, if it has any.
    pub fn own(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
        let Some(certificate) = &self.certificate else { return Ok(None) };
        let chain = certificates(certificate)?;
        let path = self.key.as_ref().unwrap_or(certificate);
        keys::check_private(path, "; --cert-key or BATON_CERT_KEY names the file with the key")?;
        let key = PrivateKeyDer::from_pem_file(path)
            .map_err(|error| anyhow!("{}: no private key in it ({error}); correct --cert-key", path.display()))?;
        Ok(Some((chain, key)))
    }

    /// Returns the authorities of services' certificates.
    pub fn authorities(&self) -> Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            let added = store.add(certificate);
            added.map_err(|error| anyhow!("{} is no authority's certificate: {error}", self.authority.display()))?;
        }
        Ok(store)
    }

    /// Returns the names of certificate and key, for an error.
    pub fn pair(&self) -> String {
        let name = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("the same file")).display().to_string();
        format!("{} with the key in {}", name(&self.certificate), name(&self.key))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = read.map_err(|error| anyhow!("{} cannot be read: {error}", path.display()))?;
    ensure!(!all.is_empty(), "{}: no certificate in it; write it in PEM", path.display());
    Ok(all)
}
