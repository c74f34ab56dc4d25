import { Component, type ReactNode } from "react";
import { ProblemNote } from "./ProblemNote";

interface Props {
  /** Another place is another try. */
  place: string;
  children: ReactNode;
}

/** What a screen shows when it fails, so that the others stay usable. React has no hook for it. */
export class FailureBoundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidUpdate(before: Props) {
    if (before.place !== this.props.place && this.state.failed) this.setState({ failed: false });
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <div className="screen">
        <ProblemNote problem={null} onRetry={() => this.setState({ failed: false })} />
      </div>
    );
  }
}
