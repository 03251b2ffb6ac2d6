//! The state that all views and harvests of the mirror share.

use crate::mirror::view::ViewStores;
use tokio::sync::OnceCell;

/// The stores of the mirror with their stamps. They are read from the store at their first use.
#[derive(Debug, Default)]
pub(crate) struct MirrorState(pub(super) OnceCell<ViewStores>);
