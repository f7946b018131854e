//! Peaks of this process and of its children; texts of the kernel.

use super::status::kibibytes_field;
use super::tree::{descendants, parent_in_stat};
use super::*;
use std::ffi::OsStr;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;

const MIB: u64 = 1 << 20;

// Other tests of the process allocate and free meanwhile, but far less than this.
const LARGE: u64 = 256;
const MOST_OF_IT: u64 = 160 * MIB;

/// The tests of this module watch the one high-water mark of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn touch(mebibytes: u64) -> Vec<u8> {
    black_box(vec![1_u8; (mebibytes * MIB) as usize])
}

#[test]
fn a_short_peak_is_seen() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let guard = PeakGuard::start(Scope::Process);
    drop(touch(LARGE));
    let peak = guard.stop();
    assert!(peak.growth().unwrap() >= MOST_OF_IT, "{peak:?}");

    // A peak before the bracket is not the bracket's, if the mark may be set back.
    let guard = PeakGuard::start(Scope::Process);
    let quiet = guard.stop();
    match quiet.source {
        PeakSource::HighWaterMark => assert!(quiet.growth().unwrap() < MOST_OF_IT, "{quiet:?}"),
        PeakSource::HighWaterMarkOfProcess { exact, .. } => assert!(!exact),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_freed_heap_is_given_back() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    // Small pieces come from the heap, which keeps what lies below a piece still in use.
    let mut pieces: Vec<Vec<u8>> = (0..16_384).map(|_| black_box(vec![1_u8; 8 << 10])).collect();
    let last = pieces.pop();
    drop(pieces);
    if !release_free_heap() {
        return;
    }
    let guard = PeakGuard::start(Scope::Process);
    let again: Vec<Vec<u8>> = (0..16_384).map(|_| black_box(vec![1_u8; 8 << 10])).collect();
    let peak = guard.stop();
    drop((again, last));
    // Or the heap shrinks while another test of this module watches.
    release_free_heap();
    if peak.is_exact() {
        assert!(peak.growth().unwrap() > 80 * MIB, "{peak:?}");
    }
}

#[test]
fn a_second_guard_does_not_erase_the_first() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let outer = PeakGuard::start(Scope::Process);
    drop(touch(LARGE));
    let inner = PeakGuard::start(Scope::Process);
    let inner = inner.stop();
    assert!(matches!(inner.source, PeakSource::HighWaterMarkOfProcess { exact: false, .. }), "{inner:?}");
    assert!(outer.stop().growth().unwrap() >= MOST_OF_IT);
}

#[test]
fn a_tree_includes_children() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let guard = PeakGuard::start(Scope::Tree(Duration::from_millis(5)));
    let held = touch(LARGE);
    let mut child = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    let alive = descendants(std::process::id()).unwrap();
    assert!(alive.contains(&child.id()), "{alive:?}");
    let peak = guard.stop();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(held);
    assert!(peak.growth().unwrap() >= MOST_OF_IT, "{peak:?}");
    let PeakSource::TreeSamples { samples, processes, .. } = peak.source else { panic!("{peak:?}") };
    assert!(samples >= 2 && processes >= 2, "{samples} {processes}");
    assert!(tree_bytes(std::process::id()).unwrap() > 0);
}

/// The kernel cuts names after 15 bytes, which may be within a character.
#[test]
fn a_child_whose_name_is_no_utf8_is_one_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let sleep = folder.path().join(OsStr::from_bytes(b"sl\xffeep"));
    symlink("/bin/sleep", &sleep).unwrap();
    let mut child = Command::new(&sleep).arg0("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    let alive = descendants(std::process::id()).unwrap();
    let status = Status::read(&child.id().to_string()).unwrap().bytes("VmRSS");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(alive.contains(&child.id()), "{alive:?}");
    assert!(status.is_some());
}

#[test]
fn resident_parts_add_up() {
    let now = resident().unwrap();
    assert_eq!(now.total, now.anonymous + now.file + now.shared);
    assert!(now.total > MIB);
}

#[test]
fn kernel_texts_are_parsed_and_damage_is_not_believed() {
    let text = "Name:\tx\nVmHWM:\t    1536 kB\nVmRSS:\t 99999999999999999999 kB\nRssAnon:\t5 pages\nPss: 18446744073709551615 kB\n";
    assert_eq!(kibibytes_field(text, "VmHWM"), Some(1536 * 1024));
    for damaged in ["VmRSS", "RssAnon", "Pss", "VmSwap", "Vm"] {
        assert_eq!(kibibytes_field(text, damaged), None, "{damaged}");
    }
    assert_eq!(parent_in_stat("12 (a) b) (c) S 7 12 12 0"), Some(7));
    assert_eq!(parent_in_stat("12 (a"), None);
}
