import { Fragment } from "react";

/** A file's name, which may be broken after each `_` and `-`: names of many words have no spaces, and to a browser they
 * are one word, broken anywhere. */
export function FileName({ name }: { name: string }) {
  let at = 0;
  return name.split(/(?<=[_-])/).map((part) => {
    const key = at;
    at += part.length;
    return (
      <Fragment key={key}>
        {key > 0 && <wbr />}
        {part}
      </Fragment>
    );
  });
}
