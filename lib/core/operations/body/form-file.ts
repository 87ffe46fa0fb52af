/** A file from a multipart body. In the body's JSON, it is the value of the part's name. */
export class FormFile {
  /** The name that the caller gave, without a path. */
  readonly filename: string
  /** The media type that the caller declared, in lower case, without parameters. */
  readonly contentType: string
  readonly bytes: Buffer

  constructor(filename: string, contentType: string, bytes: Buffer) {
    this.filename = filename
    this.contentType = contentType
    this.bytes = bytes
  }
}
