"""Authentication and access control: keys, sessions, sign-in, and the route table."""
