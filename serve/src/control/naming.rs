// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of orders in the audit log.

use wire::{Refusal, RequestBody, Role, UpdateBy, UploadKind};

/// An order as the audit log names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    /// The request.
    pub request: &'static str,
    /// The guest, CPU, file or function.
    pub subject: String,
    /// It consists of many requests: the first of a connection is written down.
    pub is_once: bool,
}

/// Returns the name of an order; `None` for a question. Typed bytes may be a password: they are not part of it.
pub(super) fn named(body: &RequestBody) -> Option<Named> {
    use RequestBody as Body;
    if body.role() == Role::Read || body.is_piece() {
        return None;
    }
    let name = |request, subject: &str| (request, subject.to_owned());
    let (request, subject) = match body {
        Body::VmStart { name: guest } => name("guest-start", guest),
        Body::VmStop { name: guest } => name("guest-stop", guest),
        Body::VmPause { name: guest } => name("guest-pause", guest),
        Body::VmResume { name: guest } => name("guest-resume", guest),
        Body::VmReset { name: guest } => name("guest-reset", guest),
        Body::VmShutdown { name: guest } => name("guest-shutdown", guest),
        Body::VmSet { name: guest, .. } => name("guest-set", guest),
        Body::VmDelete { name: guest } => name("guest-delete", guest),
        Body::ConsoleInput { name: guest, .. } => name("guest-type", guest),
        Body::VmHold { name: guest, .. }
        | Body::VmLayout { name: guest }
        | Body::VmRegisters { name: guest, .. }
        | Body::VmMemory { name: guest, .. } => name("guest-dump", guest),
        Body::VmSaved { name: guest, .. } => name("guest-save", guest),
        Body::VmRestore { name: guest, .. } => name("guest-restore", guest),
        Body::CpuOnline { index } => ("cpu-online", index.to_string()),
        Body::CpuOffline { index } => ("cpu-offline", index.to_string()),
        Body::PciAssign { function, guest, .. } => ("pci-assign", format!("{function} to {guest}")),
        Body::PciRelease { function, .. } => name("pci-release", function),
        Body::FileRemove { name: file } => name("file-remove", file),
        Body::RevokeControlKey { name: key } => name("key-revoke", key),
        Body::UploadBegin { kind, bytes, sha256 } => ("upload", file(*kind, *bytes, sha256)),
        Body::Update { is_dry_run, by } | Body::UpdateUnlessConfirmed { is_dry_run, by, .. } => {
            (if *is_dry_run { "update-dry-run" } else { "update" }, image(*by).to_owned())
        }
        other => (plain(other), String::new()),
    };
    Some(Named {
        request,
        subject,
        is_once: matches!(request, "guest-dump" | "guest-save" | "upload" | "profile" | "capture"),
    })
}

/// Returns the names of orders for the host itself.
fn plain(body: &RequestBody) -> &'static str {
    match body {
        RequestBody::VmCreate { .. } => "guest-create",
        RequestBody::ProfileBegin { .. } | RequestBody::ProfileRead { .. } => "profile",
        RequestBody::CaptureBegin { .. } | RequestBody::CaptureRead { .. } => "capture",
        RequestBody::PowerOff => "power-off",
        RequestBody::Restart => "restart",
        RequestBody::RestartUploaded => "restart-uploaded",
        RequestBody::Confirm => "confirm",
        RequestBody::UploadDrop => "upload-drop",
        RequestBody::PermitDowngrade => "permit-downgrade",
        _ => "other",
    }
}

/// Returns the subject of the order to take a file.
pub(crate) fn file(kind: UploadKind, bytes: u64, sha256: &[u8; 32]) -> String {
    let kind = match kind {
        UploadKind::Bundle => "bundle",
        UploadKind::Image => "image",
        UploadKind::File => "file",
        UploadKind::Memory => "memory",
    };
    let digits: String = sha256[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind} of {bytes} bytes, SHA-256 {digits}…")
}

fn image(by: UpdateBy) -> &'static str {
    match by {
        UpdateBy::Bundle => "bundle",
        UpdateBy::Upload => "upload",
        UpdateBy::Previous => "previous",
    }
}

/// Returns the end of an order as the audit log names it.
pub(super) fn end_of<T>(result: &Result<T, Refusal>) -> (&'static str, &str) {
    match result {
        Ok(_) => ("done", ""),
        Err(refusal) => ("refused", &refusal.reason),
    }
}
