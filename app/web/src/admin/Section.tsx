import type { ReactNode } from "react";

/** A part of the administration: what it is called, what it is for, and what can be made in it. */
export function Section(props: { title: string; lead?: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="part">
      <div className="row spread">
        <h2>{props.title}</h2>
        {props.actions !== undefined && <div className="row">{props.actions}</div>}
      </div>
      {props.lead !== undefined && <p className="quiet">{props.lead}</p>}
      {props.children}
    </section>
  );
}
