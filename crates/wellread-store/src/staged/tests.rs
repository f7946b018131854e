//! One writer, several, and the leftovers of a killed one.

use super::*;
use std::time::Duration;

#[test]
fn appears_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a/out.bin");
    let staged = Staged::new(&target, Existing::Kept).unwrap();
    std::fs::write(staged.path(), b"half").unwrap();
    drop(staged);
    assert_eq!(std::fs::read_dir(dir.path().join("a")).unwrap().count(), 0);
    let staged = Staged::new(&target, Existing::Kept).unwrap();
    std::fs::write(staged.path(), b"whole").unwrap();
    staged.commit().unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"whole");
    let error = Staged::new(&target, Existing::Kept).unwrap_err();
    assert_eq!(error.cause(), "already exists");
    assert_eq!(error.hint_text(), Some("choose another name, or replace it: overwrite true"));
}

#[test]
fn folders_that_were_made_for_nothing_go() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("a/b");
    let folder = MadeFolder::new(&inner).unwrap();
    assert!(inner.is_dir());
    drop(folder);
    assert!(!dir.path().join("a").exists() && dir.path().is_dir());
    let folder = MadeFolder::new(&inner).unwrap();
    std::fs::write(inner.join("expected.json"), b"{}").unwrap();
    drop(folder);
    assert!(inner.join("expected.json").exists());
    let there = dir.path().join("there");
    std::fs::create_dir(&there).unwrap();
    drop(MadeFolder::new(&there).unwrap());
    assert!(there.is_dir(), "it was there before");
    // A failed creation leaves nothing.
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(MadeFolder::new(&file.join("c")).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn what_is_no_set_of_images_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    Staged::new(&home, Existing::Replaced).expect("an empty folder may be replaced");
    std::fs::write(home.join("a.tif"), b"II*\0").unwrap();
    Staged::new(&home, Existing::Replaced).expect("a folder of images may be replaced");
    std::fs::write(home.join("precious.txt"), b"").unwrap();
    let error = Staged::new(&home, Existing::Replaced).unwrap_err().to_string();
    assert!(error.contains("precious.txt") && error.contains("not replaced"), "{error}");
    assert!(error.contains(&format!("move {} elsewhere", home.join("precious.txt").display())), "{error}");
    #[cfg(feature = "image-folder")]
    {
        // As another program writes it, and as wellread did before it marked its pictures: nobody can tell.
        let pictures = dir.path().join("pictures");
        std::fs::create_dir(&pictures).unwrap();
        std::fs::write(pictures.join("a.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR and more").unwrap();
        let error = Staged::new(&pictures, Existing::Replaced).unwrap_err().to_string();
        assert!(error.contains("(a.png, which wellread did not write)"), "{error}");
        let removed = format!("remove the folder {} yourself", pictures.display());
        assert!(error.contains("have no mark") && error.contains(&removed), "{error}");
        assert!(pictures.join("a.png").exists());
    }
    #[cfg(unix)]
    {
        let error = Staged::new(Path::new("/dev/null"), Existing::Replaced).unwrap_err().to_string();
        assert!(error.contains("neither a file nor a folder"), "{error}");
    }
}

/// Writing may take hours.
#[test]
fn what_came_into_a_set_while_its_successor_was_written_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let written = || {
        let staged = Staged::new(&target, Existing::Replaced).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("new.tif"), b"II*\0").unwrap();
        staged
    };
    for earlier in [true, false] {
        if earlier {
            std::fs::create_dir(&target).unwrap();
            std::fs::write(target.join("old.tif"), b"II*\0").unwrap();
        }
        let staged = written();
        std::fs::create_dir_all(&target).unwrap();
        std::fs::write(target.join("notes.txt"), b"precious").unwrap();
        let error = staged.commit().unwrap_err().to_string();
        assert!(error.contains("(notes.txt)") && error.contains("not replaced"), "{error}");
        assert_eq!(std::fs::read(target.join("notes.txt")).unwrap(), b"precious");
        assert_eq!(target.join("old.tif").exists(), earlier);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        std::fs::remove_dir_all(&target).unwrap();
    }
    written().commit().unwrap();
    assert!(target.join("new.tif").exists());
}

#[test]
fn hidden_files_and_folders_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    std::fs::create_dir_all(set.join("plate")).unwrap();
    std::fs::write(set.join("a.tif"), b"II*\0").unwrap();
    std::fs::write(set.join("plate/b.tif"), b"II*\0").unwrap();
    for name in [".DS_Store", "._a.tif", ".nfs0001", ".wellread-journal", "wellread-names.json"] {
        std::fs::write(set.join(name), b"").unwrap();
    }
    drop(Staged::new(&set, Existing::Replaced).expect("nobody misses those"));
    for name in [".notes.md", ".hidden.tif", "plate/.keep", "plate/notes.txt", "Thumbs.db"] {
        std::fs::write(set.join(name), b"").unwrap();
        let error = Staged::new(&set, Existing::Replaced).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("not replaced"), "{error}");
        std::fs::remove_file(set.join(name)).unwrap();
    }
    // Nor where nothing else is.
    let home = dir.path().join("home");
    std::fs::create_dir_all(home.join(".git")).unwrap();
    assert!(Staged::new(&home, Existing::Replaced).unwrap_err().to_string().contains(".git"));
    std::fs::rename(home.join(".git"), home.join("git")).unwrap();
    drop(Staged::new(&home, Existing::Replaced).expect("empty folders"));
    std::fs::write(home.join("git/HEAD"), b"").unwrap();
    assert!(Staged::new(&home, Existing::Replaced).unwrap_err().to_string().contains("(git)"));
}

#[test]
#[cfg(unix)]
fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let [disk, work] = ["disk", "work"].map(|name| dir.path().join(name));
    std::fs::create_dir_all(disk.join("set")).unwrap();
    std::fs::create_dir(&work).unwrap();
    std::fs::write(disk.join("file"), b"old").unwrap();
    for name in ["set", "file", "none"] {
        symlink(disk.join(name), work.join(name)).unwrap();
    }
    write(&work.join("file"), b"new").unwrap();
    assert_eq!(std::fs::read(disk.join("file")).unwrap(), b"new");
    let staged = Staged::new(&work.join("set"), Existing::Replaced).unwrap();
    std::fs::write(staged.create_dir().unwrap().join("a.tif"), b"").unwrap();
    staged.commit().unwrap();
    assert!(disk.join("set/a.tif").exists());
    let error = Staged::new(&work.join("none"), Existing::Replaced).unwrap_err().to_string();
    assert!(error.contains("is a link to") && error.contains("remove the link"), "{error}");
    assert!(
        Staged::new(&work.join("set"), Existing::Kept).unwrap_err().to_string().contains("already exists")
    );
    for name in ["set", "file", "none"] {
        assert!(work.join(name).symlink_metadata().unwrap().is_symlink(), "{name}");
    }
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 2);
}

#[test]
fn a_target_named_through_itself_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    std::fs::create_dir(&set).unwrap();
    std::fs::write(set.join("old.tif"), b"").unwrap();
    let staged = Staged::new(&set.join("../set"), Existing::Replaced).unwrap();
    std::fs::write(staged.create_dir().unwrap().join("new.tif"), b"").unwrap();
    staged.commit().unwrap();
    assert!(set.join("new.tif").exists() && !set.join("old.tif").exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_another_process_put_there_is_kept_unless_told_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &Path| std::fs::read(path).unwrap();
    let target = dir.path().join("file");
    let [first, second] = [(), ()].map(|()| Staged::new(&target, Existing::Kept).unwrap());
    std::fs::write(first.path(), b"first").unwrap();
    std::fs::write(second.path(), b"second").unwrap();
    first.commit().unwrap();
    assert!(second.commit().unwrap_err().to_string().contains("another process"));
    assert_eq!(read(&target), b"first");
    let target = dir.path().join("folder");
    let staged = || {
        let staged = Staged::new(&target, Existing::Kept).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("a.tif"), b"").unwrap();
        staged
    };
    let [first, second, third] = [(); 3].map(|()| staged());
    first.commit().unwrap();
    assert!(second.commit().unwrap_err().to_string().contains("another process"));
    // A file that would take the folder's place, and a folder that replaces it.
    std::fs::write(third.path().join("one"), b"one").unwrap();
    assert!(third.commit_file("one").unwrap_err().to_string().contains("another process"));
    let fourth = Staged::new(&target, Existing::Replaced).unwrap();
    std::fs::write(fourth.create_dir().unwrap().join("one"), b"one").unwrap();
    fourth.commit_file("one").unwrap();
    assert_eq!(read(&target), b"one");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn writers_that_replace_each_other_leave_one_whole_set() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let target = &target;
            scope.spawn(move || {
                for _ in 0..50 {
                    let staged = Staged::new(target, Existing::Replaced).unwrap();
                    let folder = staged.create_dir().unwrap();
                    for file in ["a.tif", "b.tif"] {
                        std::fs::write(folder.join(file), writer.to_string()).unwrap();
                    }
                    staged.commit().unwrap();
                }
            });
        }
    });
    let [a, b] = ["a.tif", "b.tif"].map(|file| std::fs::read(target.join(file)).unwrap());
    assert_eq!(a, b);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_no_journal_knows_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    // A program that another test is just starting has the lock too, until it runs.
    let open = || {
        let mut tries = (0..100).map(|attempt| {
            std::thread::sleep(Duration::from_millis(attempt));
            Staged::resumable(&target, Existing::Kept, "a to b")
        });
        tries.find_map(Result::ok).unwrap()
    };
    let left = open().path().to_owned();
    std::fs::write(left.join("known"), b"").unwrap();
    drop(open());
    assert!(left.join("known").exists());
    std::fs::remove_file(left.join(journal::NAME)).unwrap();
    let staged = open();
    assert!(!left.join("known").exists());
    std::fs::write(staged.path().join("a.tif"), b"").unwrap();
    staged.commit().unwrap();
    assert!(!left.exists());
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
}

/// The writer before has put its set in place and still removes what it moved aside, when the next one is done.
#[test]
fn what_another_writer_moved_aside_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let aside = dir.path().join(".wellread-resume-set.old");
    for folder in [&target, &aside] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("a.tif"), b"old").unwrap();
    }
    let staged = Staged::resumable(&target, Existing::Replaced, "a to b").unwrap();
    std::fs::write(staged.path().join("a.tif"), b"new").unwrap();
    staged.commit().unwrap();
    assert_eq!(std::fs::read(target.join("a.tif")).unwrap(), b"new");
    assert!(aside.exists());
}

#[test]
#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn what_a_killed_writer_moved_aside_goes_once_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let aside = dir.path().join(format!(".wellread-partial-{}-0-set.old", process_mark(4_294_967_294)));
    std::fs::create_dir(&aside).unwrap();
    Staged::new(&target, Existing::Replaced).unwrap().commit().unwrap_err();
    assert!(aside.exists(), "the only copy there is");
    write(&target, b"new").unwrap();
    assert!(aside.exists());
    write(&target, b"newer").unwrap();
    assert!(!aside.exists());
}

#[test]
fn unfinished_output_can_be_removed_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let staged = Staged::new(&dir.path().join("out"), Existing::Kept).unwrap();
    std::fs::write(staged.path(), b"half").unwrap();
    assert!(unfinished().contains(&staged.temporary));
    // Not `remove_unfinished` itself: it would take the files of the other tests of this process.
    drop(staged);
    assert!(unfinished().iter().all(|p| !p.starts_with(dir.path())));
}

#[test]
fn output_is_unfinished_until_it_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let staged = Staged::new(&dir.path().join("out"), Existing::Kept).unwrap();
    std::fs::write(staged.path(), b"half").unwrap();
    let reserved = dir.path().join("result.csv");
    let outputs: [(PathBuf, Box<dyn Send>); 2] = [
        (staged.temporary.clone(), Box::new(staged)),
        (reserved.clone(), Box::new(Reserved::new(&reserved).unwrap())),
    ];
    for (path, output) in outputs {
        // As the handler of a signal has it, which ends the process once nothing is listed.
        let listed = unfinished();
        let dropped = std::thread::spawn(move || drop(output));
        let asked = std::time::Instant::now();
        while path.exists() && asked.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!path.exists() && listed.contains(&path));
        drop(listed);
        dropped.join().unwrap();
        assert!(!unfinished().contains(&path));
    }
}

#[test]
fn output_that_replaces_objects_one_by_one_is_not_removed_on_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] =
        ["one", "other"].map(|name| Staged::new(&dir.path().join(name), Existing::Replaced).unwrap());
    remote::keep_on_signals(&one.temporary.join("part"));
    assert!(!unfinished().contains(&one.temporary) && unfinished().contains(&other.temporary));
}

#[test]
#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn folders_are_replaced_and_dead_leftovers_removed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("old.tif"), b"").unwrap();
    let leftover = dir.path().join(format!(".wellread-partial-{}-0-set", process_mark(4_294_967_294)));
    std::fs::create_dir(&leftover).unwrap();
    let staged = Staged::new(&target, Existing::Replaced).unwrap();
    assert!(!leftover.exists());
    std::fs::write(staged.create_dir().unwrap().join("new"), b"").unwrap();
    staged.commit().unwrap();
    assert!(target.join("new").exists() && !target.join("old.tif").exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_reserved_name_is_given_back_unless_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("result.csv");
    let reserved = Reserved::new(&path).unwrap();
    assert_eq!(Reserved::new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(path.exists() && unfinished().contains(&path));
    drop(reserved);
    assert!(!path.exists() && !unfinished().contains(&path));
    let mut reserved = Reserved::new(&path).unwrap();
    reserved.keep();
    assert!(!unfinished().contains(&path));
    drop(reserved);
    assert!(path.exists());
}

#[test]
fn finished_output_can_be_read_before_it_is_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let finished = |resumable: bool| {
        let staged = if resumable {
            Staged::resumable(&target, Existing::Kept, "of").unwrap()
        } else {
            Staged::new(&target, Existing::Kept).unwrap()
        };
        std::fs::write(staged.create_dir().unwrap().join("a.tif"), b"a").unwrap();
        staged.finished()
    };
    for resumable in [false, true] {
        let output = finished(resumable);
        assert_eq!(std::fs::read(output.path().join("a.tif")).unwrap(), b"a");
        assert!(!target.exists());
        drop(output);
        // Output that a run can go on with is kept unless it is known to be wrong.
        assert_eq!(part(&target).is_some(), resumable);
        let output = finished(resumable);
        output.discard();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{resumable}");
        finished(resumable).commit().unwrap();
        assert_eq!(std::fs::read(target.join("a.tif")).unwrap(), b"a");
        std::fs::remove_dir_all(&target).unwrap();
    }
    let staged = Staged::new(&target, Existing::Kept).unwrap();
    std::fs::write(staged.create_dir().unwrap().join("one"), b"one").unwrap();
    let output = staged.finished_file("one");
    assert_eq!(std::fs::read(output.path()).unwrap(), b"one");
    output.commit().unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"one");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
