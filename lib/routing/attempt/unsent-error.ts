/** Why a request could not be sent at all. Its message is ours: it holds no address and no secret. */
export class UnsentError extends Error {
  override readonly name = 'UnsentError'
  /** Whether what was waited for took too long. */
  readonly late: boolean

  constructor(message: string, late = false) {
    super(message)
    this.late = late
  }
}
