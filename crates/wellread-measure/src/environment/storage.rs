//! The filesystem and the disk under a path.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Root;
use crate::sys;

/// Where a path's bytes lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The path asked about, as given.
    #[serde(serialize_with = "crate::path_text::serialize")]
    pub path: PathBuf,
    /// Type of the filesystem ("ext4", "xfs", "nfs4", "overlay", "tmpfs" …).
    pub filesystem: Option<String>,
    /// Device or server it is mounted from.
    pub device: Option<String>,
    /// Mount options.
    pub options: Option<String>,
    /// Whether the disk turns; of a virtual disk whatever the host says.
    pub rotational: Option<bool>,
    /// Model of the disk.
    pub model: Option<String>,
    /// Size of the filesystem in bytes.
    pub total_bytes: Option<u64>,
    /// Bytes that may still be written.
    pub free_bytes: Option<u64>,
}

impl Storage {
    /// The storage of an existing path; `None` for one that does not exist.
    pub fn of(path: &Path) -> Option<Self> {
        Self::read(&Root::default(), path)
    }

    /// The kind of the disk, if it is known and no usual one. The flag of a disk of a virtual machine says what the host chose,
    /// and nothing of the disk.
    pub fn kind(&self, is_in_virtual_machine: bool) -> Option<&'static str> {
        let turns = self.rotational == Some(true);
        if self.is_virtual() || turns && is_in_virtual_machine {
            return Some("virtual disk");
        }
        turns.then_some("hard disk")
    }

    /// Whether its device or its model is that of a virtual disk: virtio, Xen, or a hypervisor's.
    fn is_virtual(&self) -> bool {
        let device = self.device.as_deref().and_then(|device| device.strip_prefix("/dev/"));
        let model = self.model.as_deref().unwrap_or_default().to_lowercase();
        device.is_some_and(|name| name.starts_with("vd") || name.starts_with("xvd"))
            || ["qemu", "vbox", "virtual"].iter().any(|word| model.contains(word))
    }

    pub(super) fn read(root: &Root, path: &Path) -> Option<Self> {
        let real = fs::canonicalize(path).ok()?;
        let stat = sys::filesystem(&real).ok();
        let mounts = root.read("proc/self/mountinfo").unwrap_or_default();
        let mount = Mount::holding(&mounts, &real);
        let disk = |name: &str| {
            let device = format!("sys/dev/block/{}", mount.as_ref()?.device_number);
            // A partition has its queue one folder up, with the whole disk.
            root.read(&format!("{device}/{name}")).or_else(|| root.read(&format!("{device}/../{name}")))
        };
        Some(Self {
            path: path.to_path_buf(),
            rotational: disk("queue/rotational").map(|flag| flag == "1"),
            model: disk("device/model"),
            filesystem: mount
                .as_ref()
                .map(|mount| mount.filesystem.to_owned())
                .or_else(|| magic_name(stat?.magic).map(str::to_owned)),
            device: mount.as_ref().map(|mount| unescape(mount.source)),
            options: mount.map(|mount| mount.options.to_owned()),
            total_bytes: stat.map(|stat| stat.total_bytes),
            free_bytes: stat.map(|stat| stat.free_bytes),
        })
    }
}

/// One line of `/proc/self/mountinfo`:
/// `ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPER_OPTIONS`.
#[derive(Debug)]
struct Mount<'a> {
    device_number: &'a str,
    point: PathBuf,
    options: &'a str,
    filesystem: &'a str,
    source: &'a str,
}

impl<'a> Mount<'a> {
    /// The mount with the longest point that is part of the path; of equals the last, which hides the others.
    fn holding(mounts: &'a str, path: &Path) -> Option<Self> {
        mounts
            .lines()
            .filter_map(Self::parse)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (device_number, _root, point, options) = (left.next()?, left.next()?, left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (filesystem, source) = (right.next()?, right.next()?);
        Some(Self { device_number, point: PathBuf::from(unescape(point)), options, filesystem, source })
    }
}

/// White space and backslashes in paths are written as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        if let Some(byte) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            bytes.extend_from_slice(&part.as_bytes()[3..]);
        } else {
            bytes.push(b'\\');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names of the numbers in `f_type` of `statfs(2)`, for systems without a readable mount list.
fn magic_name(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0xEF53 => "ext2/ext3/ext4",
        0x5846_5342 => "xfs",
        0x9123_683E => "btrfs",
        0x2FC1_2FC1 => "zfs",
        0xF2F5_2010 => "f2fs",
        0xCA45_1A4E => "bcachefs",
        0x0102_1994 => "tmpfs",
        0x8584_58F6 => "ramfs",
        0x794C_7630 => "overlay",
        0x6969 => "nfs",
        0xFF53_4D42 => "cifs",
        0xFE53_4D42 => "smb2",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        0x0BD0_0BD0 => "lustre",
        0x4750_4653 => "gpfs",
        0x00C3_6400 => "ceph",
        0x1983_0326 => "beegfs",
        0x7371_7368 => "squashfs",
        0xE0F5_E1E2 => "erofs",
        0x4D44 => "vfat",
        0x2011_BAB0 => "exfat",
        0x5346_544E => "ntfs",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::root_with;
    use super::*;

    #[test]
    fn the_innermost_mount_holds_the_path() {
        let mounts = "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n\
                      30 22 0:50 / /data\\040two rw,noatime - nfs4 server:/x rw\n\
                      31 22 0:51 / /dat rw - tmpfs none rw\n\
                      damaged line\n40 22 0:9 / - x\n";
        let at = |path: &str| Mount::holding(mounts, Path::new(path)).map(|mount| mount.filesystem);
        assert_eq!(at("/data two/set/1.tif"), Some("nfs4"));
        assert_eq!(at("/database"), Some("ext4"));
        assert_eq!(Mount::holding("", Path::new("/")).map(|mount| mount.source), None);
    }

    #[test]
    fn disks_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let (_root_folder, root) = root_with(&[
            ("proc/self/mountinfo", "22 1 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw\n"),
            ("sys/dev/block/259:1/partition", "1"),
            ("sys/dev/block/queue/rotational", "0\n"),
            ("sys/dev/block/device/model", "Instance Storage \n"),
        ]);
        let storage = Storage::read(&root, folder.path()).unwrap();
        assert_eq!(storage.filesystem.as_deref(), Some("ext4"));
        assert_eq!(storage.device.as_deref(), Some("/dev/nvme0n1p1"));
        assert_eq!((storage.rotational, storage.model.as_deref()), (Some(false), Some("Instance Storage")));
        assert_eq!(Storage::read(&root, Path::new("no/such")), None);
        assert_eq!([false, true].map(|is_virtual| storage.kind(is_virtual)), [None, None]);
    }

    /// Virtio has the flag of disks that turn unless the host says otherwise.
    #[test]
    fn a_virtual_disk_is_no_hard_disk() {
        let folder = tempfile::tempdir().unwrap();
        let kinds = |device: &str, model: &str, flag: &str| {
            let mounts = format!("22 1 254:0 / / rw,relatime - ext4 {device} rw\n");
            let (_root_folder, root) = root_with(&[
                ("proc/self/mountinfo", mounts.as_str()),
                ("sys/dev/block/254:0/queue/rotational", flag),
                ("sys/dev/block/254:0/device/model", model),
            ]);
            let storage = Storage::read(&root, folder.path()).unwrap();
            [false, true].map(|is_in_virtual_machine| storage.kind(is_in_virtual_machine).unwrap_or_default())
        };
        assert_eq!(kinds("/dev/vda1", "", "1"), ["virtual disk", "virtual disk"]);
        assert_eq!(kinds("/dev/xvda", "", "0"), ["virtual disk", "virtual disk"]);
        assert_eq!(kinds("/dev/sda", "QEMU HARDDISK", "1"), ["virtual disk", "virtual disk"]);
        assert_eq!(kinds("/dev/sda", "ST4000NM0035", "1"), ["hard disk", "virtual disk"]);
        assert_eq!(kinds("/dev/nvme0n1", "Samsung SSD", "0"), ["", ""]);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn without_a_mount_list_the_magic_number_speaks() {
        let (folder, root) = root_with(&[]);
        let storage = Storage::read(&root, folder.path()).unwrap();
        assert!(storage.device.is_none() && storage.total_bytes.unwrap() > 0);
        assert_eq!(magic_name(0x0102_1994), Some("tmpfs"));
        assert_eq!(magic_name(1), None);
    }

    #[test]
    fn escapes_are_undone_once() {
        assert_eq!(unescape("a\\040b\\134c"), "a b\\c");
        assert_eq!(unescape("a\\9\\é"), "a\\9\\é");
    }
}
