//! Record batches and schemas handed between Lance's release of Arrow and this workspace's.

wellread_store::arrow_bridge!(arrow_array_58, arrow_schema_58);
