// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that replace a running one: when they are checked, who signed them, and how they get there.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::bundle::signed;
use baton::image::{read, seal_new, sealed, verify};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::{Emulator, built};
use e2e::recipe::{Recipe, tiny};
use e2e::small_image;
use e2e::tool::Operator;
use lab::Ending;
use seal::SecretKey;
use wire::{
    EventKind, MAX_UPLOAD_BYTES, Refusal, RefusalCode, ReplyBody, RequestBody, RestartReport, UploadKind, Verify,
    VmState,
};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("an_image_is_checked_early_in_the_blackout_too_or_never", an_image_is_checked_by_the_policy),
    ("a_stray_write_to_a_locked_image_is_a_fault", a_stray_write_to_a_locked_image_is_a_fault),
    ("a_stray_write_is_found_in_the_blackout", a_stray_write_is_found_in_the_blackout),
    ("a_host_with_keys_takes_only_what_they_have_signed", a_host_with_keys_takes_only_what_they_have_signed),
    ("bad_images_are_refused_and_guests_run_on", bad_images_are_refused_and_guests_run_on),
    ("a_sent_bundle_brings_its_own_guests", a_sent_bundle_brings_its_own_guests),
    ("an_upload_that_is_not_continued_is_dropped", an_upload_that_is_not_continued_is_dropped),
    ("a_file_that_does_not_fit_is_refused", a_file_that_does_not_fit_is_refused),
    ("the_tool_signs_sends_and_restarts", the_tool_signs_sends_and_restarts),
];

const A: &str = "a";
const B: &str = "b";
/// As in the restart's tests: a crowded machine may lose a CPU over comparing clocks.
const OPTIONS: &str = "tsc=skip";

/// A guest that computes for ever.
fn busy(name: &str) -> Result<Recipe> {
    with_guest(name, "seed=2 rounds=2000000000 do=fresh,stain,registers")
}

/// A guest that waits for ever: what is sent to its host comes in faster.
fn idle(name: &str) -> Result<Recipe> {
    with_guest(name, "seed=1 do=fresh,stain,wait")
}

fn with_guest(name: &str, does: &str) -> Result<Recipe> {
    let guest = tiny(name, "keeper", does)?;
    Ok(Recipe::new().cpus(2).memory_mib(256).options(OPTIONS).guest(guest))
}

/// It has started, and found no trace of the guest that was there before.
fn is_fresh(host: &mut Host, name: &str) -> Result<()> {
    host.event(&EventKind::VmStarted { name: name.to_owned() })?;
    host.guest_prints(name, "keeper: stain: ok")
}

fn image() -> Result<Vec<u8>> {
    read(&built("baton.elf")?)
}

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// Restarts, and returns the new image's report.
fn restart(host: &mut Host, body: RequestBody) -> Result<RestartReport> {
    match host.client()?.request_within(BOOT_LIMIT, body) {
        Ok(ReplyBody::Restarted(report)) => Ok(report),
        Ok(other) => bail!("not the answer to a restart: {other:?}"),
        Err(error) => {
            host.listen(Duration::from_secs(1));
            Err(error).with_context(|| host.seen.to_string())
        }
    }
}

fn upload(host: &mut Host, kind: UploadKind, file: &[u8]) -> Result<()> {
    let sent = host.upload(kind, file);
    if sent.is_err() {
        host.listen(Duration::from_secs(1));
    }
    sent.with_context(|| host.seen.to_string())
}

/// Returns what is free once CPUs without a guest have got to where they need their last frame.
fn free_once_stable(host: &mut Host) -> Result<u64> {
    host.listen(Duration::from_secs(2));
    free(host)
}

fn free(host: &mut Host) -> Result<u64> {
    Ok(host.client()?.info()?.memory_free_bytes)
}

/// Also that it is hashed by SHA-NI where the CPU has that, and by plain code where not: both come to the digest that
/// the tool has sealed. QEMU 7.2 emulates no SHA-NI.
fn an_image_is_checked_by_the_policy() -> Result<()> {
    let bytes = image()?.len() as u64;
    let (emulator, usual) =
        if Emulator::Ten.is_here() { (Emulator::Ten, "SHA-NI") } else { (Emulator::System, "plain code") };
    let cases = [
        (Verify::Early, "early", "max,-cx16,-sha-ni", Some("plain code"), (bytes, 0)),
        (Verify::Sha256, "sha256", "max,-cx16", Some(usual), (bytes, bytes)),
        (Verify::None, "none", "max,-cx16", None, (0, 0)),
    ];
    for (policy, name, cpu, means, (before, blackout)) in cases {
        let recipe = Recipe { cpu, ..busy(A)?.on(emulator) };
        let mut host = recipe.options(&format!("{OPTIONS} verify={name}")).start()?;
        is_fresh(&mut host, A)?;
        for generation in 2..=3 {
            let report = restart(&mut host, RequestBody::Restart)?;
            ensure!((report.generation, report.verify) == (generation, policy), "{report:?}");
            ensure!(
                (report.bytes_hashed_before, report.bytes_hashed_in_blackout) == (before, blackout),
                "{name}: {report:?}"
            );
            ensure!((report.hashing_in_blackout_ns > 0) == (blackout > 0), "{report:?}");
            is_fresh(&mut host, A)?;
        }
        for by in ["plain code", "SHA-NI"] {
            let is_logged = host.seen.host_logged(&["whole (", &format!("by {by})")]);
            ensure!(is_logged == (means == Some(by)), "{name}, by {by}: {is_logged}\n{}", host.seen);
        }
        host.powers_off()?;
    }
    Ok(())
}

/// A restart that ends the host, with this in its last words.
fn ends(policy: &str) -> Result<Host> {
    let mut host =
        busy(A)?.with_fault_points().options(&format!("{OPTIONS} selftest=spoil-staged verify={policy}")).start()?;
    is_fresh(&mut host, A)?;
    host.client()?.send(RequestBody::Restart)?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    ensure!(!host.seen.host_logged(&["generation 2, handed over"]), "{}", host.seen);
    Ok(host)
}

/// Returns the address to which the self-test writes, by its report.
fn stray_address(host: &Host) -> Result<String> {
    let word = "a stray write to the staged image at ";
    let found = host.seen.host.iter().find_map(|line| line.split_once(word));
    let (_, address) = found.with_context(|| format!("no stray write:\n{}", host.seen))?;
    Ok(address.trim().to_owned())
}

/// The fault is that write's: a write to a page that is present, at that address.
fn a_stray_write_to_a_locked_image_is_a_fault() -> Result<()> {
    let host = ends("early")?;
    let address = stray_address(&host)?;
    ensure!(host.seen.host_logged(&["#PF page fault", "error code 0x3"]), "{}", host.seen);
    ensure!(host.seen.host_logged(&["fault address", &address]), "{address}:\n{}", host.seen);
    Ok(())
}

/// The write succeeds, and is found before the image is entered.
fn a_stray_write_is_found_in_the_blackout() -> Result<()> {
    let host = ends("sha256")?;
    stray_address(&host)?;
    ensure!(host.seen.host_logged(&["after it was checked", "it is not what was sealed"]), "{}", host.seen);
    ensure!(!host.seen.host_logged(&["page fault"]), "{}", host.seen);
    Ok(())
}

/// The image that was sent is refused with a reason that has all of `parts`.
fn is_refused(host: &mut Host, image: &[u8], parts: &[&str]) -> Result<()> {
    // Either its first pieces show what is wrong, or all of it does.
    let refusal = match host.upload(UploadKind::Image, image) {
        Ok(()) => host.refusal(RequestBody::RestartUploaded),
        Err(error) => error.downcast::<Refusal>(),
    };
    if refusal.is_err() {
        host.listen(Duration::from_secs(1));
    }
    let refusal = refusal.with_context(|| host.seen.to_string())?;
    let text = refusal.to_string();
    ensure!(refusal.code == RefusalCode::Invalid && !refusal.hint.is_empty(), "{refusal:?}");
    ensure!(parts.iter().all(|part| text.contains(part)), "{text:?} lacks {parts:?}");
    host.order(RequestBody::UploadDrop)
}

/// Whatever was tried, it runs as if nothing had been.
fn runs_on(host: &mut Host, free_before: u64) -> Result<()> {
    let before = host.vm(A)?;
    // A guest that is paused and resumed has left its CPU and come back to it.
    host.order(RequestBody::VmPause { name: A.to_owned() })?;
    host.state(A, VmState::Paused)?;
    host.order(RequestBody::VmResume { name: A.to_owned() })?;
    // The first exit after that comes when the emulator's machine gets a core.
    while host.vm(A)?.exits_total <= before.exits_total {
        host.wait_a_moment().context("it makes no progress")?;
    }
    let (free, generation) = (free(host)?, host.client()?.info()?.generation);
    ensure!(
        (free, generation) == (free_before, 1),
        "{free} bytes are free, {free_before} were; generation {generation}"
    );
    Ok(())
}

/// A host that trusts key 1, with an image that this key has signed.
fn with_key() -> Result<(Recipe, tempfile::TempDir)> {
    let folder = e2e::recipe::folder()?;
    let path = folder.path().join("signed.elf");
    fs::write(&path, seal_new(&image()?, Some(&key(1)))?)?;
    let recipe = Recipe { image: baton::config::Image::File(path), trusted_keys: vec![key(1).public()], ..busy(A)? };
    Ok((recipe, folder))
}

fn a_host_with_keys_takes_only_what_they_have_signed() -> Result<()> {
    let (recipe, folder) = with_key()?;
    // The policy that checks nothing does not count there.
    let mut host = recipe.options(&format!("{OPTIONS} verify=none")).start()?;
    is_fresh(&mut host, A)?;
    let free = free_once_stable(&mut host)?;
    let image = small_image::good();
    is_refused(&mut host, &sealed(image.clone()), &["it is not signed", "trusts 1 key", "[trust] keys"])?;
    let other = seal_new(&image, Some(&key(2)))?;
    is_refused(&mut host, &other, &["it is signed by", "does not trust", "[trust] keys"])?;
    let mut forged = seal_new(&image, Some(&key(1)))?;
    let signature = forged.len() - 50;
    forged[signature] ^= 1;
    is_refused(&mut host, &forged, &["its signature is not that of", "baton image sign"])?;
    // Signed once, and too old by now; no client may ask for it here.
    let old = seal_new(&small_image::of_security(0), Some(&key(1)))?;
    is_refused(&mut host, &old, &["security version is 0", "permits no downgrade"])?;
    let refusal = host.refusal(RequestBody::PermitDowngrade)?;
    ensure!(refusal.reason.contains("permits no downgrade"), "{refusal:?}");
    // Bundles are held to the same keys. One with a small image is sent in no time.
    let small = folder.path().join("small.elf");
    fs::write(&small, sealed(image))?;
    let bundle = Recipe { image: baton::config::Image::File(small), ..busy(A)? }.bundle()?;
    for (bundle, reason) in [(bundle.clone(), "it is not signed"), (signed(bundle, &key(2)), "does not trust")] {
        upload(&mut host, UploadKind::Bundle, &bundle)?;
        let refusal = host.refusal(RequestBody::RestartUploaded)?;
        ensure!(refusal.reason.contains(reason) && refusal.hint.contains("--sign"), "{refusal:?}");
        host.order(RequestBody::UploadDrop)?;
    }
    runs_on(&mut host, free)?;
    let report = restart(&mut host, RequestBody::Restart)?;
    ensure!((report.verify, report.bytes_hashed_in_blackout) == (Verify::Early, 0), "{report:?}");
    let signer = key(1).public().id().to_string();
    host.logs(&[format!("signed by {signer}").as_str()])?;
    is_fresh(&mut host, A)?;
    let info = host.client()?.info()?;
    ensure!((report.signer.as_ref(), info.signer.as_ref()) == (Some(&signer), Some(&signer)), "{report:?}: {info:?}");
    let is_named =
        |kind: &EventKind| matches!(kind, EventKind::ImageReplaced { signer: Some(by), .. } if *by == signer);
    let (events, _) = host.client()?.events(0)?;
    ensure!(events.iter().any(|event| is_named(&event.kind)), "{events:?}");
    host.powers_off()
}

fn bad_images_are_refused_and_guests_run_on() -> Result<()> {
    let mut host = busy(A)?.start()?;
    is_fresh(&mut host, A)?;
    let free = free_once_stable(&mut host)?;
    let good = sealed(small_image::good());
    ensure!(verify(&good, &[]).is_ok());
    is_refused(&mut host, &small_image::good(), &["no seal", "baton image sign"])?;
    is_refused(&mut host, &good[..good.len() / 2], &["it is cut off", "release"])?;
    is_refused(&mut host, &sealed(small_image::image(183, 1, 1)), &["for another machine", "183", "release"])?;
    is_refused(&mut host, &sealed(small_image::image(62, 200, 201)), &["hand-over versions 200 to 201"])?;
    is_refused(&mut host, &sealed(small_image::image(62, 0, 0)), &["hand-over versions 0 to 0"])?;
    // One bit anywhere: behind the headers, in the code, before and in the seal.
    for place in [0x800, 0x1000, 0x1fff, good.len() - 160, good.len() - 150, good.len() - 140, good.len() - 90] {
        let mut flipped = good.clone();
        flipped[place] ^= 4;
        ensure!(verify(&flipped, &[]).is_err(), "the tool takes byte {place}");
        is_refused(&mut host, &flipped, &["the image is not trusted"])?;
    }
    is_refused(&mut host, b"#!/bin/sh\n", &["no usable ELF file"])?;
    // A kernel of 13 MiB is refused by its first piece.
    let mut kernel = vec![0; MAX_UPLOAD_BYTES];
    kernel[..2].copy_from_slice(b"MZ");
    ensure!(received(&mut host, begin(13 << 20, 1))? == 0);
    let refusal = host.refusal(RequestBody::UploadData { offset: 0, bytes: kernel })?;
    ensure!(refusal.code == RefusalCode::Invalid && refusal.reason.contains("no usable ELF file"), "{refusal:?}");
    is_refused(&mut host, &sealed(small_image::of_security(0)), &["security version is 0", "--allow-downgrade"])?;
    runs_on(&mut host, free)?;
    ensure!(restart(&mut host, RequestBody::Restart)?.generation == 2);
    is_fresh(&mut host, A)?;
    host.powers_off()
}

fn a_sent_bundle_brings_its_own_guests() -> Result<()> {
    let mut host = idle(A)?.start()?;
    is_fresh(&mut host, A)?;
    let refusal = host.refusal(RequestBody::RestartUploaded)?;
    ensure!(refusal.code == RefusalCode::WrongState && refusal.reason.contains("no file was sent"), "{refusal:?}");
    let refusal = host.upload(UploadKind::Bundle, &[b"070701".as_slice(), &[b'x'; 200]].concat());
    let refusal = refusal.err().context("it is no bundle")?.downcast::<Refusal>()?;
    ensure!(refusal.reason.contains("bundle") && refusal.hint.contains("baton bundle"), "{refusal:?}");
    let (a, b) = (idle(A)?.bundle()?, idle(B)?.bundle()?);
    let mut free_then = None;
    for (bundle, name, generation) in [(&b, B, 2), (&a, A, 3)] {
        upload(&mut host, UploadKind::Bundle, bundle)?;
        let report = restart(&mut host, RequestBody::RestartUploaded)?;
        ensure!((report.generation, report.cpus_lost) == (generation, 0), "{report:?}");
        is_fresh(&mut host, name)?;
        let names: Vec<String> = host.client()?.vms()?.into_iter().map(|vm| vm.name).collect();
        ensure!(names == [name], "{names:?}");
        // Of the bundles before nothing is left: what is free does not shrink.
        host.listen(Duration::from_secs(1));
        let free = free(&mut host)?;
        let first = *free_then.get_or_insert(free);
        ensure!(free.abs_diff(first) <= 64 << 10, "generation {generation}: {free} bytes are free, {first} were");
    }
    ensure!(restart(&mut host, RequestBody::Restart)?.generation == 4, "the bundle that was sent is the host's own");
    is_fresh(&mut host, A)?;
    host.powers_off()
}

fn begin(bytes: u64, digest: u8) -> RequestBody {
    RequestBody::UploadBegin { kind: UploadKind::Image, bytes, sha256: [digest; 32] }
}

fn received(host: &mut Host, body: RequestBody) -> Result<u64> {
    match host.client()?.request(body)? {
        ReplyBody::Received { next_offset } => Ok(next_offset),
        other => bail!("{other:?}"),
    }
}

fn an_upload_that_is_not_continued_is_dropped() -> Result<()> {
    let mut host = busy(A)?.start()?;
    is_fresh(&mut host, A)?;
    let before = free_once_stable(&mut host)?;
    // Its first bytes are those of an image, which is all that they can show.
    let bytes = small_image::good()[..MAX_UPLOAD_BYTES].to_vec();
    let piece = |offset| RequestBody::UploadData { offset, bytes: bytes.clone() };
    ensure!(received(&mut host, begin(1 << 20, 1))? == 0);
    ensure!(received(&mut host, piece(0))? == MAX_UPLOAD_BYTES as u64);
    ensure!(free(&mut host)? + (1 << 20) == before, "memory is set aside");
    // A client that sends the same goes on where it was left; another file waits.
    ensure!(received(&mut host, begin(1 << 20, 1))? == MAX_UPLOAD_BYTES as u64);
    let refusal = host.refusal(begin(1 << 20, 2))?;
    ensure!(refusal.code == RefusalCode::WrongState && refusal.reason.contains("another file"), "{refusal:?}");
    let refusal = host.refusal(RequestBody::RestartUploaded)?;
    ensure!(refusal.reason.contains("not all there"), "{refusal:?}");
    let since = Instant::now();
    while free(&mut host)? != before {
        ensure!(since.elapsed() < Duration::from_secs(60), "the file is still there");
        host.listen(Duration::from_millis(500));
    }
    ensure!(since.elapsed() > Duration::from_secs(5), "it was dropped too soon");
    host.logs(&["upload", "dropped"])?;
    let Refusal { reason, .. } = host.refusal(piece(2 * MAX_UPLOAD_BYTES as u64))?;
    ensure!(reason.contains("no file is being sent"), "{reason}");
    // One that is not what was announced is given up at its end.
    ensure!(received(&mut host, begin(MAX_UPLOAD_BYTES as u64, 3))? == 0);
    let refusal = host.refusal(piece(0))?;
    ensure!(
        refusal.code == RefusalCode::Invalid && refusal.reason.contains("not the one that was announced"),
        "{refusal:?}"
    );
    runs_on(&mut host, before)?;
    host.powers_off()
}

fn a_file_that_does_not_fit_is_refused() -> Result<()> {
    let mut host = busy(A)?.start()?;
    is_fresh(&mut host, A)?;
    let before = free_once_stable(&mut host)?;
    for bytes in [before + 1, 1 << 40, u64::MAX, 0] {
        let refusal = host.refusal(begin(bytes, 1))?;
        let code = if bytes == 0 { RefusalCode::Invalid } else { RefusalCode::Exhausted };
        ensure!(refusal.code == code && !refusal.hint.is_empty(), "{bytes}: {refusal:?}");
    }
    runs_on(&mut host, before)?;
    host.powers_off()
}

fn the_tool_signs_sends_and_restarts() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    let folder = operator.folder();
    let output = operator.run(&["key", "new", "release.key"])?.well()?;
    let again = operator.run(&["key", "new", "release.key"])?;
    ensure!(again.status == Some(1) && again.err.contains("not written over"), "{again:?}");
    ensure!(operator.run(&["key", "show", "release.key.pub"])?.well()? == output);
    ensure!(operator.run(&["key", "show", "release.key"])?.well()? == output);
    fs::copy(built("baton.elf")?, folder.join("next.elf"))?;
    let unsealed = operator.run(&["image", "verify", "next.elf"])?;
    ensure!(unsealed.status == Some(1) && unsealed.err.contains("no seal"), "{unsealed:?}");
    operator.run(&["image", "sign", "next.elf", "--key", "release.key"])?.well()?;
    let verified = operator.run(&["image", "verify", "next.elf", "--key", "release.key.pub"])?.well()?;
    ensure!(verified.contains("which is trusted"), "{verified}");
    let info = operator.run(&["image", "info", "next.elf"])?.well()?;
    ensure!(info.contains("hand-over    reads and writes") && info.contains(output.trim()), "{info}");
    let kernel = built("guests/keeper.elf")?;
    let signed = format!(
        "[trust]\nkeys = [\"release.key.pub\"]\n[host]\nmemory = \"256MiB\"\nimage = \"next.elf\"\n\
         [[guest]]\nname = \"a\"\nkernel = {kernel:?}\ncmdline = \"do=wait\"\nmemory = \"16MiB\"\n"
    );
    fs::write(folder.join("signed.toml"), signed)?;
    operator.run(&["up", "--detach", "signed.toml"])?.well()?;
    let out = operator.run(&["restart", "--yes", "--image", "next.elf"])?.well()?;
    let expected = ["sent ", "generation   2 (", "nothing in the blackout", "\nsigned by    "];
    ensure!(expected.iter().all(|part| out.contains(part)), "{out}");
    fs::write(folder.join("small.elf"), small_image::good())?;
    let unsigned = operator.run(&["restart", "--yes", "--image", "small.elf"])?;
    ensure!(unsigned.status == Some(1) && unsigned.err.contains("it is not signed"), "{unsigned:?}");
    let key = ["--sign", "release.key"];
    operator.run(&["bundle", "signed.toml", "-o", "unsigned.cpio"])?.well()?;
    let unsigned = operator.run(&["restart", "--yes", "unsigned.cpio"])?;
    ensure!(unsigned.status == Some(1) && unsigned.err.contains("unsigned.cpio is not sent"), "{unsigned:?}");
    operator.run(&[&["bundle", "signed.toml", "-o", "signed.cpio"], &key[..]].concat())?.well()?;
    let report = operator.run(&["restart", "--yes", "--json", "signed.cpio"])?.well()?;
    ensure!(report.contains("\"generation\":3") && report.contains("\"bytes_hashed_in_gap\":0"), "{report}");
    operator.run(&["down", "--yes"])?.well()?;
    Ok(())
}
