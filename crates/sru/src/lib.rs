//! Search/Retrieve via URL (SRU) 1.1, 1.2 and 2.0: CQL, requests and responses. Pure: no I/O, no clock.
