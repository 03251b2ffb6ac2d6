//! The plain files of a data folder, which each process keeps on its own disk: cached pages, static repository files, broken
//! pages, reports of checks, and the lock of the folder.

mod broken_pages;
mod check_reports;
pub mod data_dir;
mod page_cache;
mod static_files;

pub use broken_pages::{BROKEN_PAGE_BYTES_MAX, BrokenPageInfo, BrokenPages};
pub use check_reports::CheckReports;
pub use data_dir::DataDirLock;
pub use page_cache::{
    BlockSums, Entry as PageEntry, FileSlice, HotPage, LeavingPage, NewBody, NewPage, PageCoding, PageKey,
    Pages, Part, Size, UnsavedPage, Wait as DiskWait,
};
pub use static_files::{FileStamp, NewStaticFile, StaticFileInfo, StaticFiles};
