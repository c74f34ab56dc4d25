import { type ComponentProps, useEffect, useEffectEvent, useState } from "react";

const TYPING = 250; // milliseconds of silence after which somebody is taken to have finished

type TypingFieldProps = Omit<ComponentProps<"input">, "value" | "onChange"> & {
  value: string;
  onValue: (value: string) => void;
};

/** A text field that tells what was typed once the typing pauses. */
export function TypingField({ value, onValue, ...rest }: TypingFieldProps) {
  const [typed, setTyped] = useState(value);
  const [told, setTold] = useState(value);
  const tell = useEffectEvent(onValue);
  if (value !== told) {
    // Changed from elsewhere.
    setTold(value);
    setTyped(value);
  }

  useEffect(() => {
    if (typed === told) return;
    const timer = window.setTimeout(() => {
      setTold(typed);
      tell(typed);
    }, TYPING);
    return () => window.clearTimeout(timer);
  }, [typed, told]);

  return <input {...rest} value={typed} onChange={(event) => setTyped(event.target.value)} />;
}
