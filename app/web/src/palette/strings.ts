/** What the palette says. */
export const palette = {
  label: "Go to, or do",
  placeholder: "A document, a conversation, or what to do",
  open: "Search and commands",
  keys: "Ctrl+K",
  documents: "Documents",
  conversations: "Conversations",
  actions: "Actions",
  none: "Nothing has this in its name.",
  found: (count: number) => (count === 1 ? "1 choice" : `${count} choices`),
  failed: "The documents and conversations could not be searched.",
  newConversation: "New conversation",
  addFiles: "Add files",
  usage: "Usage",
  admin: "Administration",
  theme: "Light or dark",
  signOut: "Sign out",
};
