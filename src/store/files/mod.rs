//! The stores that are plain files.

mod broken_pages;
mod check_reports;
mod page_cache;
mod sealed_token;
mod static_files;
mod token_key;

pub use broken_pages::{BROKEN_PAGE_BYTES_MAX, BrokenPageInfo, BrokenPages};
pub use check_reports::CheckReports;
pub use page_cache::{
    BlockSums, Entry as PageEntry, HotPage, NewBody, PageCoding, PageKey, Pages, Part, Size, Wait as DiskWait,
};
pub(crate) use sealed_token::TokenUse;
pub use static_files::{FileStamp, NewStaticFile, StaticFileInfo, StaticFiles};
pub use token_key::TokenKey;
