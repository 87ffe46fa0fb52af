/** A file that came as a part of a multipart body; it stands in the body's JSON under the part's name. */
export class FormFile {
  /** As the caller named it; no path. */
  readonly filename: string
  /** Media type as the caller declared it, in lower case, without parameters. */
  readonly contentType: string
  readonly bytes: Buffer

  constructor(filename: string, contentType: string, bytes: Buffer) {
    this.filename = filename
    this.contentType = contentType
    this.bytes = bytes
  }
}
