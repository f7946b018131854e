//! Faults on the way. They are passed over where they pass. Else they are an error that names the fault, its number, its cause and
//! one thing to do.

use crate::pages;
use crate::server::{self, Wrong};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use wellread_store::place::{self, FileRange, Part};

/// Bytes of the objects here: more than what is fetched with a file's beginning and end.
const LENGTH: usize = 400_000;

fn bytes() -> Vec<u8> {
    (0..LENGTH).map(|i| (i * 7 % 251) as u8).collect()
}

/// Opens an object of a bucket of its own, so that what goes wrong later goes wrong with its middle.
fn opened(bucket: &str) -> place::File {
    server::url();
    server::put(&format!("{bucket}/a"), &bytes());
    place::open(Path::new(&format!("s3://{bucket}/a"))).unwrap().0
}

#[test]
fn what_passes_is_asked_for_again() {
    for (bucket, wrong) in [
        ("again-503", Wrong::Status(503, "SlowDown")),
        ("again-500", Wrong::Status(500, "InternalError")),
        ("again-429", Wrong::Status(429, "TooManyRequests")),
        ("again-cut", Wrong::Cut),
        ("again-short", Wrong::Short),
        ("again-long", Wrong::Long),
        ("again-range", Wrong::Range),
    ] {
        let file = opened(bucket);
        server::spoil(bucket, &[wrong, wrong]);
        let mut buffer = vec![0; 1000];
        file.read_exact_at(&mut buffer, 200_000).unwrap_or_else(|e| panic!("{bucket}: {e}"));
        assert_eq!(buffer, &bytes()[200_000..201_000], "{bucket}");
        let middle = server::requests(&format!("{bucket}/a"));
        assert_eq!(middle[1..], ["GET bytes=200000-200999"; 3], "{bucket}");
    }
}

#[test]
fn a_stalled_answer_is_given_up_and_asked_for_again() {
    let file = opened("stalled");
    server::spoil("stalled", &[Wrong::Stall]);
    let mut buffer = vec![0; 10];
    file.read_exact_at(&mut buffer, 200_000).unwrap();
    assert_eq!(buffer, &bytes()[200_000..200_010]);
}

#[test]
fn an_answer_that_drips_is_given_up_and_asked_for_again() {
    let file = opened("dripping");
    server::spoil("dripping", &[Wrong::Drip]);
    // At the rate of the server it would take more than eight minutes.
    let mut buffer = vec![0; 10_000];
    file.read_exact_at(&mut buffer, 200_000).unwrap();
    assert_eq!(buffer, &bytes()[200_000..210_000]);
    let middle = server::requests("dripping/a");
    assert!(
        middle.len() >= 3 && middle[1..].iter().all(|one| one == "GET bytes=200000-209999"),
        "{middle:?}"
    );
}

#[test]
fn what_stays_wrong_is_an_error_that_says_all() {
    let always = |wrong| [wrong; 20];
    for (bucket, wrong, kind, words) in [
        ("never-503", Wrong::Status(503, "SlowDown"), ErrorKind::Other, "answered 503 SlowDown"),
        ("never-cut", Wrong::Cut, ErrorKind::ConnectionReset, "the connection was lost"),
        ("never-short", Wrong::Short, ErrorKind::Other, "500 of 1000 bytes came"),
        ("never-long", Wrong::Long, ErrorKind::Other, "more than 1000 bytes came"),
        (
            "never-range",
            Wrong::Range,
            ErrorKind::Other,
            "another range than was asked for: bytes 200000-200999 became bytes 200001-",
        ),
    ] {
        let file = opened(bucket);
        server::spoil(bucket, &always(wrong));
        let error = file.read_exact_at(&mut vec![0; 1000], 200_000).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("GET bytes 200000-200999 of s3://{bucket}/a: ")), "{text}");
        assert!(text.contains(words) && text.contains("after 6 attempts in "), "{text}");
        assert!(!text.contains("the-secret") && !text.contains("the-key-id"), "{text}");
    }
}

#[test]
fn bare_requests_that_fail_say_all_too() {
    drop(opened("never-bare"));
    server::spoil("never-bare", &[Wrong::Status(503, "SlowDown"); 20]);
    let path = Path::new("s3://never-bare/a").to_owned();
    let link = place::of(&path).link().unwrap();
    let error = link.fetch(&[FileRange { path, range: 7..17 }], 1).unwrap_err().to_string();
    assert!(
        error.starts_with("GET bytes 7-16 of s3://never-bare/a: the server answered 503 SlowDown"),
        "{error}"
    );
    assert!(error.contains("after 6 attempts in ") && error.contains("WELLREAD_IN_FLIGHT"), "{error}");
}

#[test]
fn what_cannot_pass_is_asked_for_once() {
    for (bucket, wrong, kind, words) in [
        ("once-403", Wrong::Status(403, "AccessDenied"), ErrorKind::PermissionDenied, "403 AccessDenied"),
        ("once-404", Wrong::Status(404, "NoSuchKey"), ErrorKind::NotFound, "404 NoSuchKey"),
        ("once-whole", Wrong::Whole, ErrorKind::Other, "ignores ranges"),
        ("once-replaced", Wrong::Replace, ErrorKind::Other, "was replaced by another object"),
    ] {
        let file = opened(bucket);
        server::spoil(bucket, &[wrong]);
        let error = file.read_exact_at(&mut vec![0; 1000], 200_000).unwrap_err();
        assert_eq!((error.kind(), server::still_wrong(bucket)), (kind, 0), "{error}");
        let text = error.to_string();
        assert!(text.contains(words) && !text.contains("attempts in"), "{text}");
        if text.contains("answered 40") {
            assert!(text.contains("credentials: the environment (AWS_ACCESS_KEY_ID)"), "{text}");
        }
    }
}

#[test]
fn a_replaced_object_stays_an_error_until_it_is_opened_anew() {
    let file = opened("replaced");
    let other: Vec<u8> = bytes().into_iter().rev().collect();
    server::put("replaced/a", &other);
    let mut buffer = vec![0; 10];
    for _ in 0..2 {
        let error = file.read_exact_at(&mut buffer, 200_000).unwrap_err().to_string();
        assert!(error.contains("was replaced"), "{error}");
    }
    let (file, length) = place::open(Path::new("s3://replaced/a")).unwrap();
    file.read_exact_at(&mut buffer, 200_000).unwrap();
    assert_eq!((length, &*buffer), (LENGTH as u64, &other[200_000..200_010]));
}

#[test]
fn several_ranges_are_joined_where_they_are_near() {
    let file = opened("joined");
    let (mut one, mut two, mut far) = ([0; 10], [0; 20], [0; 30]);
    let mut parts = [
        Part { offset: 300_000, buffer: &mut far },
        Part { offset: 100_000, buffer: &mut one },
        Part { offset: 100_500, buffer: &mut two },
    ];
    file.read_ranges(&mut parts).unwrap();
    let bytes = bytes();
    assert_eq!((&one[..], &two[..]), (&bytes[100_000..100_010], &bytes[100_500..100_520]));
    assert_eq!(far, bytes[300_000..300_030]);
    let mut asked = server::requests("joined/a").split_off(1);
    asked.sort_unstable();
    assert_eq!(asked, ["GET bytes=100000-100519", "GET bytes=300000-300029"]);
    let beyond = file.read_ranges(&mut [Part { offset: LENGTH as u64, buffer: &mut one }]);
    assert_eq!(beyond.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn beginning_and_end_are_fetched_once() {
    let file = opened("windows");
    for at in [0, 8, 5000, LENGTH - 8, LENGTH - 40_000] {
        let mut eight = [0; 8];
        file.peek_exact_at(&mut eight, at as u64).unwrap();
        assert_eq!(eight, bytes()[at..at + 8], "{at}");
    }
    assert_eq!(server::requests("windows/a"), ["GET bytes=0-65535", "GET bytes=334464-399999"]);
    // A listed object is opened without a request.
    let listed = place::list(Path::new("s3://windows")).unwrap().count();
    let (_, length) = place::open(Path::new("s3://windows/a")).unwrap();
    assert_eq!((listed, length, server::requests("windows/a").len()), (1, LENGTH as u64, 2));
}

#[test]
fn what_a_listing_does_not_name_is_not_asked_for() {
    server::url();
    server::put("lacking/set/a", b"1");
    server::put("lacking/set/folder/b", b"2");
    let at = |name: &str| Path::new("s3://lacking/set").join(name);
    let is_there = |name: &str| {
        let opened = place::read(&at(name));
        if let Err(e) = &opened {
            assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
        }
        (place::exists(&at(name)), opened.is_ok())
    };
    let lists = || server::requests("lacking").len() + server::requests("lacking/").len();
    assert_eq!(place::list(&at("")).unwrap().count(), 2);
    let before = lists();
    for name in ["zarr.json", ".zattrs", ".zgroup"] {
        assert_eq!(is_there(name), (false, false), "{name}");
        assert_eq!(server::requests(&format!("lacking/set/{name}")), Vec::<String>::new(), "{name}");
    }
    assert_eq!(lists(), before);
    assert_eq!((is_there("a"), place::is_folder(&at("folder"))), ((true, true), true));
    // Deeper entries were not listed.
    assert_eq!(is_there("folder/b"), (true, true));
    // Objects that this process writes are there at once, and those that it removes are gone.
    place::write(&at("zarr.json"), b"3").unwrap();
    assert_eq!(is_there("zarr.json"), (true, true));
    place::of(&at("a")).remove_file(&at("a")).unwrap();
    assert_eq!(is_there("a"), (false, false));
    // An object that another process writes is there when a set is opened.
    assert_eq!(place::list(&at("")).unwrap().count(), 2);
    server::put("lacking/set/.zattrs", b"4");
    place::of(&at("")).look_anew(&at(""));
    assert_eq!(is_there(".zattrs"), (true, true));
}

#[test]
fn a_page_of_a_listing_that_fails_is_asked_for_again_alone() {
    server::url();
    for i in 0..12 {
        server::put(&format!("failing-pages/set/{i:02}"), b"1");
    }
    server::put("failing-pages/set/z/a", b"1");
    pages::fail_every_other("failing-pages");
    let pages = || {
        let all = server::all_requests("failing-pages");
        all.iter().filter(|one| *one == "GET failing-pages").count()
    };
    let folder = Path::new("s3://failing-pages/set");
    // Three pages, each asked for twice.
    assert_eq!((place::list(folder).unwrap().count(), pages()), (13, 6));
    assert_eq!((place::of(folder).files_below(folder).unwrap().len(), pages()), (13, 12));
}

#[test]
fn keys_that_no_address_names_are_left_out_of_listings() {
    server::url();
    for key in ["set/a", "set/b//c", "set//d", "/e", "set/../f", "set/./g"] {
        server::put(&format!("slashes/{key}"), b"1");
    }
    let folder = Path::new("s3://slashes/set");
    let mut names: Vec<_> = place::list(folder).unwrap().map(|entry| entry.unwrap().name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    let root = Path::new("s3://slashes");
    assert_eq!(place::of(root).files_below(root).unwrap(), [Path::new("set/a")]);
    assert_eq!(place::read(&folder.join("a")).unwrap(), b"1");
}

#[test]
fn an_empty_object_is_a_file_without_bytes() {
    server::url();
    server::put("empties/a", b"");
    let path = Path::new("s3://empties/a");
    assert_eq!(place::read(path).unwrap(), b"");
    assert_eq!(place::metadata(path).unwrap().length, 0);
}

/// A server with slow disks answers when it has copied all.
#[test]
fn a_copy_is_waited_for_as_long_as_its_bytes_take() {
    server::url();
    let bytes = vec![7; 64 << 20];
    server::put("slow-copies/a", &bytes);
    place::rename(Path::new("s3://slow-copies/a"), Path::new("s3://slow-copies/b")).unwrap();
    assert!(server::get("slow-copies/b").unwrap() == bytes && server::get("slow-copies/a").is_none());
}

#[test]
fn nobody_at_the_other_end_is_an_error_soon() {
    server::url();
    let error = place::open(Path::new("http://127.0.0.1:1/a.tif")).err().unwrap().to_string();
    assert!(error.contains("no connection") && error.contains("after 5 attempts"), "{error}");
}

#[test]
fn a_server_without_tls_is_an_error_soon() {
    server::url();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/a.tif", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.write_all(b"HTTP/1.1 400 -\r\ncontent-length: 0\r\n\r\n");
            // Bytes that nobody reads would take the answer with them.
            let _ = connection.read_to_end(&mut vec![]);
        }
    });
    let error = place::open(Path::new(&address)).err().unwrap().to_string();
    assert!(error.contains("no connection: ") && error.contains("after 5 attempts"), "{error}");
    assert!(error.contains(&address) && error.contains("look at the endpoint"), "{error}");
}
