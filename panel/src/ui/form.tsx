// A form that counts its submissions: an error of a field lasts until the field changes or the form is sent again.
import { type ComponentProps, useState } from 'react'
import { SubmissionContext } from './field-error'

interface Props extends Omit<ComponentProps<'form'>, 'onSubmit'> {
  onSubmit: () => void
}

export function Form({ onSubmit, children, ...rest }: Props) {
  const [submission, setSubmission] = useState(0)
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault()
        setSubmission(submission + 1)
        onSubmit()
      }}
    >
      <SubmissionContext value={submission}>{children}</SubmissionContext>
    </form>
  )
}
