/** What could not be carried over: where it stands in LiteLLM's file, and what to do instead. Never quotes a value. */
export class Notes {
  readonly lines: string[] = []

  /** @param path such as `model_list[3].litellm_params.rpm`. */
  add(path: string, text: string): void {
    // Paths repeat names of the file, which can hold any character.
    this.lines.push(`${path}: ${text}`.replaceAll(/[\p{Cc}\u2028\u2029]/gu, '?'))
  }
}

/** What each part of the conversion needs. */
export interface Context {
  readonly notes: Notes
  /** The file's own `environment_variables`, then those of this process: `os.environ/NAME` outside of secrets. */
  readonly env: Readonly<Record<string, string | undefined>>
}
