"""Tables: the same questions, asked of many documents one by one."""
